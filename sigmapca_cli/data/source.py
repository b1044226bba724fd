"""What every source of data offers to training: standardised float32 rows by index, exact float64 moments."""

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.copies import Copies, copies_of
from sigmapca_cli.data.moments.accumulate import Moments, standardisation, streamed_moments
from sigmapca_cli.data.moments.centred_rows import stretches
from sigmapca_cli.data.moments.covariance import SecondMoments, Whitening
from sigmapca_cli.data.moments.implicit import WIDE, ImplicitCovariance
from sigmapca_cli.data.moments.whitening import low_rank_whitening, whitening_matrix, whole_refused
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.subsample import RowSample
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.errors import InputError

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[np.float32]
WIDEST_TILE = 1 << 20
CACHED = 1 << 17  # entries whose float64 copy stays in the cache
LEAST_COMPLETE = 20
"""Number of rows without a missing value from which on these alone are judged."""
WIDEST_BLOCK = 1 << 22  # entries of a block of wide rows: 32 MB in float64


def as_index(rows: Index | slice) -> Index:
    """Return the numbers of some rows."""
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows


class Source(SecondMoments):
    """Rows x = (raw − mean)/scale, then @ whitening if there is one; constant features are exactly 0.

    With `data.centre=false` nothing is subtracted: `mean` is 0 then, and `covariance` gives the mean of the rows.

    A subclass gives `_gather` (raw rows, in units where `unit` × raw is the raw feature), and `_raw_moments` where it
    knows a shorter way to them.
    Data are read-only after construction, so any number of threads may call `rows`.
    """

    name: str
    n: int
    p: int
    patch_shape: tuple[int, int, int] | None = None
    truth: Truth | None = None
    sample_rate: float | None = None
    names: tuple[str, ...] | None = None  # of the features, where the file names its columns
    units: Mapping[str, str] = MappingProxyType({})  # of the features, by name
    labels: Sequence[str] | None = None  # of the rows: the index that was left out
    facts: Mapping[str, Any] = MappingProxyType({})  # what was done to the data, for the run's attributes
    missing: NDArray[np.int64] | None = None  # (p,) values that were missing, by feature
    incomplete: NDArray[np.bool_] | None = None  # rows that had missing values, where those were filled
    grid: Grid | None = None  # where the features lie in an array of more dimensions
    clip: Array | None = None  # (2, p) least and greatest raw value, where the data were clipped
    warnings: list[str] | None = None  # what was said of the data; None: not looked at yet
    unit: float = 1.0
    has_rows: bool = True  # False: only moments are known
    sparse: bool = False  # rows are compressed, and products take one vector at a time
    sample: RowSample | None = None  # rows that the first pass over a file kept, to measure by
    ordered: bool | None = None  # data.ordered: whether rows are in time; None: to be found (`row_order`)
    pieces: tuple[int, ...] = ()  # rows at which a new file, subject or stretch after a gap begins
    by_subject: bool = False  # rows are those of subjects, of whom a piece each
    pictures: int | None = None  # how many the rows are windows of
    timed: bool = False  # a column of the file counts the time
    mean: Array
    scale: Array
    whitening: Whitening | None = None
    hash: str

    # what a row is called in its file: its line, or its number
    row_words: Callable[[int], str] = "row {}".format

    @abstractmethod
    def _gather(self, rows: Index | slice) -> Any:
        """Raw rows (b, p) in their stored type, of an index or of a slice of the numbers 0 to n − 1.

        An array, or for a slice what NumPy takes as one and `[:, columns]` reads in part.
        """

    def _raw_moments(self, diagonal: bool) -> Moments:
        """Biased moments of the raw features (unit applied); streamed."""
        blocks = map(self._gather, row_shards.own_blocks(self.n, self._block_size()))
        m = streamed_moments(blocks, diagonal)
        return Moments(m.n, m.mean * self.unit, m.second * self.unit**2)

    def moments(self) -> Moments:
        """Return count, mean (p,) and biased covariance (p, p) of the rows before standardisation."""
        return self._raw_moments(diagonal=False)

    def _block_size(self) -> int:
        """Rows a block: enough for a fast product, few enough that its float64 copy stays below 128 MB."""
        return min(max((1 << 20) // self.p, 1024), max((1 << 24) // self.p, 16))

    def _standardise(self, options: Standardisation, content: bytes) -> None:
        """Compute mean, scale and whitening once, and name the data by a hash of content and options."""
        m = self._raw_moments(diagonal=True)
        self.mean, variance = m.mean, m.second
        scale, self._constant = standardisation(
            m.mean, variance, options.standardise, options.epsilon, options.relative_epsilon
        )
        self._options = options
        self._variance = variance
        self._covariance = self._axes = self._leading = None
        self.scale, self.whitening = scale, None
        if options.whiten != "none":
            self.whitening = self._whitening_of(options) * options.scale_input
            self._covariance = None
        else:
            self.scale = scale / options.scale_input
        self._data_mean = m.mean
        if not options.centre:
            self.mean = np.zeros_like(m.mean)
        self._prepare_apply()
        described = repr((self.name, self.n, self.p, self.patch_shape, options)) + options.described
        parts = (content, described.encode(), m.mean.tobytes(), variance.tobytes())
        self.hash = hashlib.sha256(b"\0".join(parts)).hexdigest()

    def _whitening_of(self, options: Standardisation) -> Whitening:
        """Return what whitens the scaled rows, of many features by its factors."""
        rank = options.whiten_rank
        if self.p <= WIDE:
            return whitening_matrix(self._scaled_covariance(), options.whiten, rank)
        if rank is None:
            raise InputError(whole_refused(self.p))
        self._data_mean, self._offset = self.mean, np.zeros_like(self.mean)
        return low_rank_whitening(self.leading_axes(min(rank, self.n, self.p)), options.whiten, rank)

    @cached_property
    def copies(self) -> Copies | None:
        """Which rows are copies of each other; None if few are, or they are too many to ask."""
        return copies_of(self)

    def complete(self, index: Index) -> NDArray[np.bool_] | None:
        """Return which of some rows had no missing value, None for all, or if hardly one had none.

        Filled values have a shape of their own, which tells the columns apart where the data do not.
        """
        if self.incomplete is None:
            return None
        known = ~self.incomplete[index]
        return None if known.all() or known.sum() < LEAST_COMPLETE else known

    @property
    def windows(self) -> bool:
        """Whether rows are windows of pictures, several of each."""
        return self.pictures is not None and self.n > self.pictures

    def _prepare_apply(self) -> None:
        self._gain64 = gain = self._gain()
        self._mean32 = (self.mean / self.unit).astype(np.float32)
        self._gain32 = (gain * self.unit).astype(np.float32)
        self._tiles = self._mean32[None], self._gain32[None]
        offset = (self._data_mean - self.mean) * gain
        self._offset: Array = offset if self.whitening is None else offset @ self.whitening

    def _repeated(self, rows: int) -> tuple[Rows, Rows]:
        """Mean and gain, repeated to full batches: without broadcasting an operation takes half the time."""
        if rows * self.p > WIDEST_TILE:
            return self._mean32, self._gain32
        tiles = self._tiles
        if len(tiles[0]) < rows:
            tiles = np.tile(self._mean32, (rows, 1)), np.tile(self._gain32, (rows, 1))
            self._tiles = tiles  # one assignment, so other threads see the old pair or the new one
        return tiles[0][:rows], tiles[1][:rows]

    def _apply(self, raw: NDArray, out: Rows | None) -> Rows:
        """Standardise stored rows."""
        raw = np.asarray(raw)  # rows of a file may be read only now
        if raw.dtype == np.uint8 and self.whitening is None:
            # Bytes are exact in float32, so float32 passes are as good as float64 and twice as fast.
            x = np.empty(raw.shape, np.float32) if out is None else out
            np.copyto(x, raw, casting="unsafe")
            mean, gain = self._repeated(len(raw))
            x -= mean
            x *= gain
            return x
        step = max(1, CACHED // self.p)
        if self.whitening is None and len(raw) > step:
            x = np.empty(raw.shape, np.float32) if out is None else out
            for start in range(0, len(raw), step):
                part = slice(start, start + step)
                self._apply(raw[part], x[part])
            return x
        # float64 here: in float32 a column with mean 1e5 and std 1 would lose three digits, and whitening
        # would magnify the rounding of the leading directions in the last ones.
        wide = raw.astype(np.float64)
        if self.unit != 1.0:
            wide *= self.unit
        wide -= self.mean
        wide *= self._gain64
        if self.whitening is not None:
            wide = wide @ self.whitening
        if out is None:
            return wide.astype(np.float32)
        out[...] = wide
        return out

    def take(self, index: Index, *, raw: bool = False, out: Rows | None = None) -> NDArray:
        """Rows (b, p) of the given indices: standardised, float32, written into `out` when it is given.

        raw: before standardisation, float64 in the units of `mean` and `scale`.
        """
        found = self._gather(index)
        return self._in_units(found) if raw else self._apply(found, out)

    def blocks(self, size: int = 8192, *, raw: bool = False) -> Iterator[NDArray]:
        """All rows in order, in (m, p) blocks of at most `size` rows, as `take` has them; of a rank, its share."""
        for rows in stretches(row_shards.own(self.n), self._fitting(size)):
            found = self._gather(rows)
            yield self._in_units(found) if raw else self._apply(found, None)

    def project(
        self,
        B: NDArray,
        rows: Index | RowSample | None = None,
        *,
        exact: bool = False,
        size: int = 8192,
    ) -> Iterator[NDArray]:
        """Rows in order, projected: blocks x @ B (m, k) in the type of B (p, k); of a rank, its share.

        rows: those of an index, or of the sample that a pass kept; all rows by default. exact: all rows about their
        mean, in float64 from the stored values on, for B float64.
        """
        if exact:
            yield from self._products().projections(B)
        else:
            for found in self._stored(rows, self._fitting(size)):
                yield self._apply(found, None).astype(B.dtype, copy=False) @ B

    def _stored(self, rows: Index | RowSample | None, size: int) -> Iterator[NDArray]:
        """Yield the rows that `project` takes as they are stored, in blocks."""
        if isinstance(rows, RowSample):
            return rows.blocks(size)
        if rows is None:
            return map(self._gather, stretches(row_shards.own(self.n), size))
        return map(self._gather, np.array_split(rows, max(1, -(-len(rows) // size))))

    def _fitting(self, size: int) -> int:
        """Rows of a block, of which wide rows hold fewer."""
        return size if self.p <= WIDE else max(1, min(size, WIDEST_BLOCK // self.p))

    def _in_units(self, found: NDArray) -> Array:
        """Stored rows as float64, in the units of `mean` and `scale`."""
        return np.asarray(found).astype(np.float64) * self.unit

    @property
    def has_unit_variance(self) -> bool:
        """Whether every feature that varies was divided by its own standard deviation, or the data are white."""
        options = self._options
        scaled = options.standardise == "feature" or options.whiten != "none"
        return scaled and options.scale_input == 1.0

    def centred(self) -> "Source":
        """Return the same rows less their mean; itself where they are centred already."""
        if not self._offset.any():
            return self
        other = copy.copy(self)
        other.mean = self._data_mean
        other._prepare_apply()
        return other

    def placed(self, mean: Array, scale: Array, whitening: Whitening | None = None) -> "Source":
        """Return the same rows standardised with another mean, scale (p,) and whitening; constants are kept."""
        other = copy.copy(self)
        other.mean, other.scale, other.whitening = mean, scale, whitening
        other._constant = np.zeros_like(self._constant)
        other._covariance = other._axes = other._leading = None
        other._prepare_apply()
        return other

    def divided(self, unit: float) -> "Source":
        """The same data with every row divided by one number; itself where that is 1."""
        if unit == 1.0:
            return self
        other = copy.copy(self)
        C = self.covariance()[1]
        if self.whitening is None:
            other.scale = self.scale * unit
        else:
            other.whitening = self.whitening / unit
        if isinstance(C, ImplicitCovariance):
            other._covariance = C.divided(unit**2)
        else:
            values, vectors = self.principal_axes()
            other._covariance, other._axes = C / unit**2, (values / unit**2, vectors)
        other._prepare_apply()
        return other
