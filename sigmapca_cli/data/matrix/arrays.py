"""data=array: a matrix (samples × features) from a file, streamed from disk when it is large."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.codes import without_codes
from sigmapca_cli.data.cleaning.copies import MOST_ENTRIES, copies_in
from sigmapca_cli.data.cleaning.repair import Repaired, repaired
from sigmapca_cli.data.config import DataConfig, Forecast
from sigmapca_cli.data.matrix.concatenated import files_of, stacked
from sigmapca_cli.data.matrix.in_rows import check_matrix, usable
from sigmapca_cli.data.matrix.sparse import SparseSource
from sigmapca_cli.data.moments.accumulate import Moments, streamed_moments
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.on_disk.progress import paced
from sigmapca_cli.data.on_disk.row_file import RowFile, RowSlices
from sigmapca_cli.data.readers.array_files import is_hdf5, read_matrix
from sigmapca_cli.data.readers.remembered import remembered
from sigmapca_cli.data.readers.row_marks import marked, without_subject
from sigmapca_cli.data.readers.sparse_files import is_sparse
from sigmapca_cli.data.readers.table import Table, in_array, in_table, override, row_words, without_names
from sigmapca_cli.data.source import Index, Source
from sigmapca_cli.data.standardisation import Standardisation, images_of, need_two_samples, pieces_in, rows_of
from sigmapca_cli.data.subsample import RowSample, evenly_spaced
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged
from sigmapca_cli.system.untrusted_hdf5 import has_format

LARGEST_KEPT = 1 << 26
"""Bytes of a table up to which it is kept."""
READ_BY = (
    "key", "dataset", "rows", "header", "columns", "drop", "decimal", "delimiter", "encoding", "subject",
    "recognise", "flat",
)  # fmt: skip
"""Fields of the data group that a reader heeds; what is done with the numbers comes later."""


class ArraySource(Source):
    """Rows of a matrix in memory or in a file."""

    def __init__(
        self,
        data: NDArray | RowFile,
        where: str,
        options: Standardisation,
        part: slice | None = None,
        place: Callable[[int, int], str] | None = None,
        least: int = 2,
        forecast: Forecast | None = None,
    ) -> None:
        """`place`: (row, column) to words that locate the value in its file; `least`: smallest number of rows.

        forecast: what the run will need, said with the time that a pass over a file takes.
        """
        self.name, self._where, self._data, self._place = "array", where, data, place
        self._part = range(len(data))[part or slice(None)]
        if len(self._part) < least:
            need_two_samples(len(self._part), where)
        self.n, self.p = len(self._part), data.shape[1]
        self.pixels = data.dtype  # of the values as stored
        self._moments: Moments | None = None
        self._forecast = forecast(self.n, self.p) if forecast is not None else ""
        self._standardise(options, self._fingerprint())

    def _fingerprint(self) -> bytes:
        """Return SHA-256 of the values; for large data of 64 rows only, because mean and variance are hashed too."""
        geometry = repr((self._data.shape, self._data.dtype.str, self._part)).encode()
        if isinstance(self._data, np.ndarray):
            return hashlib.sha256(geometry + hashlib.sha256(self._data.data).digest()).digest()
        index = evenly_spaced(self.n, 64)
        digest = hashlib.sha256(geometry)
        for row in index.reshape(-1, 1):  # one at a time: wide rows take much memory together
            digest.update(self._gather(row).tobytes())
        return digest.digest()

    def _gather(self, rows: Index | slice) -> Any:
        if not isinstance(rows, slice):
            index = rows * self._part.step + self._part.start
            return self._data[index] if isinstance(self._data, np.ndarray) else self._data.gather(index)
        part = self._part[rows]
        if isinstance(self._data, np.ndarray):
            return self._data[part.start : part.stop : part.step]
        if self.p > WIDE:
            return RowSlices(self._data, part)
        return self._data.block(part.start, min(part.stop, len(self._data)))[:: part.step]

    def _checked_blocks(self, size: int) -> Iterator[NDArray]:
        parts, words, kept = list(row_shards.own_blocks(self.n, size)), "", None
        if not isinstance(self._data, np.ndarray):
            kept = RowSample.of((self.n, self.p), self._data.dtype)
            words = (
                f"{self._where}: {self.n} rows × {self.p} features, "
                f"{self._data.nbytes / 1e9:.1f} GB {self._data.place}: "
                f"about {{time}} left of this pass over the rows{self._forecast}"
            )
        for rows in paced(
            parts, (part.stop - part.start for part in parts), len(row_shards.own(self.n)), words
        ):
            block = np.asarray(self._gather(rows))
            if block.dtype.kind == "f" and not np.isfinite(block).all():
                self._refuse_nonfinite(rows.start, size)
            if kept is not None:
                kept.take(rows.start, block)
            yield block
        self.sample = kept

    def _refuse_nonfinite(self, start: int, size: int) -> None:
        """Raise InputError with the place of the first NaN or infinity and the number of all."""
        count, rows, first, advice = 0, 0, "", ""
        for begin in range(start, self.n, size):
            block = np.asarray(self._gather(slice(begin, min(begin + size, self.n))))
            bad = np.argwhere(~np.isfinite(block))
            if len(bad) and not first:
                row, column = (int(i) for i in bad[0])
                missing = bool(np.isnan(block[row, column]))
                place = (self._place or in_array)(self._part[begin + row], column)
                kind = ("NaN, a missing value," if self._place else "NaN") if missing else "infinity"
                first = f"{kind} {place}"
                advice = ", or add data.missing=drop or data.missing=mean" if missing else ""
            count += len(bad)
            rows += len(np.unique(bad[:, 0]))
        more = f" ({count} such values in {rows} row{'s' * (rows > 1)})" if count > 1 else ""
        raise InputError(
            f"{self._where}: {first}{more}: remove or replace {'them' if count > 1 else 'it'}{advice}"
        )

    def _raw_moments(self, diagonal: bool) -> Moments:
        """Return the moments; one pass computes mean and covariance together, unless p is very large."""
        if self._moments is None:
            together = self.p <= WIDE or not diagonal
            blocks = self._checked_blocks(self._block_size())
            self._moments = streamed_moments(blocks, diagonal=not together)
        m = self._moments
        if not diagonal and m.second.ndim == 1:
            return streamed_moments(map(self._gather, row_shards.own_blocks(self.n, self._block_size())))
        second = m.second.diagonal().copy() if diagonal and m.second.ndim == 2 else m.second
        return Moments(m.n, m.mean, second)


def build(cfg: DataConfig, forecast: Forecast | None = None) -> Source:
    if cfg.path is None:
        raise InputError(
            "data=array needs data.path=FILE (.npy, .npz, .csv, .tsv, .h5, .nc, .parquet or .mat)"
        )
    paths = files_of(cfg.path)
    if is_hdf5(paths[0]):
        from sigmapca_cli.data.cache import prepared
        from sigmapca_cli.data.matrix import sums

        if has_format(paths[0], sums.FORMAT):
            raise InputError(
                f"{paths[0]} holds sums of rows, and no rows: use data=moments data.path={cfg.path}"
            )
        if len(paths) == 1 and prepared.is_prepared(paths[0]):
            return prepared.load(paths[0], cfg)
    where = str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
    tables = [read_one(path, cfg) for path in paths]
    table = tables[0] if len(tables) == 1 else stacked(tables, paths)
    return table_source(table, cfg, where, forecast)


def table_source(table: Table, cfg: DataConfig, where: str, forecast: Forecast | None = None) -> Source:
    """Return a table as a source, after missing values and outliers are treated; names are kept.

    Raise InputError for settings that would fill a sparse table, whose zeros are values.
    """
    logger = logging.getLogger("sigmapca")
    for note in table.notes:
        logger.warning("%s", note)
    sparse = is_sparse(table.data)
    if sparse and cfg.clip:
        raise InputError(f"{where} is sparse, and data.clip would fill it: drop it, or use solver.clip")
    fixed = Repaired(table.data)
    if not sparse:
        fixed = repaired(table.data, cfg.missing, cfg.clip, where, table.names, getattr(cfg, "fill", None))
    matrix, n = fixed.matrix, fixed.matrix.shape[0]
    part, pieces = arranged(table, n, fixed.kept, cfg)
    rows = part or slice(None)
    asked = Standardisation.of(cfg), part, in_table(table, fixed.kept), getattr(cfg, "least", 2)
    source = (
        SparseSource("array", matrix, where, *asked)
        if sparse
        else ArraySource(matrix, where, *asked, forecast)
    )
    source.pieces, source.timed = pieces_in(pieces, range(n)[rows]), table.timed
    source.by_subject = table.subjects is not None
    source.missing = fixed.by_column
    source.incomplete = None if fixed.incomplete is None else fixed.incomplete[rows]
    source.names = None if table.names is None else tuple(table.names)
    source.sample_rate, source.grid = table.sample_rate, table.grid
    source.units, source.facts, source.clip = table.units, fixed.facts, fixed.bounds
    if part is not None and isinstance(matrix, np.ndarray) and matrix.size <= MOST_ENTRIES:
        copies = copies_in(matrix)
        if copies is not None and (elsewhere := copies.outside(part)):
            source.facts = {**fixed.facts, "copies_elsewhere": elsewhere}
    source.row_words = row_words(table, fixed.kept, rows)
    if table.labels is not None and fixed.kept is None and part is None:
        source.labels = table.labels
    return source


def arranged(table: Table, n: int, kept: Index | None, cfg: DataConfig) -> tuple[slice | None, list[int]]:
    """Return the rows of data.half or data.part, None for all, and where pieces begin among all n rows of a table.

    kept (n,): rows of the table that remain. What was left out is a gap. Parts go by subject where there are some.
    """
    pieces = np.asarray(table.pieces, np.int64)
    if kept is not None:
        pieces = np.concatenate([np.searchsorted(kept, pieces), np.flatnonzero(np.diff(kept) > 1) + 1])
    if table.subjects is not None:
        subjects = table.subjects if kept is None else table.subjects[kept]
        first = np.flatnonzero(np.concatenate([[True], subjects[1:] != subjects[:-1]]))
        pieces = np.concatenate([pieces, first])
        if cfg.part is not None:
            edges, chosen = np.append(first, n), images_of(len(first), cfg)
            return slice(int(edges[chosen.start]), int(edges[chosen.stop])), pieces.tolist()
    whole = cfg.half == "all" and cfg.part is None
    return None if whole else rows_of(n, cfg), pieces.tolist()


def read_one(path: Path, cfg: DataConfig) -> Table:
    """Return the checked table of one file."""
    features = without_subject(cfg)
    asked = repr([getattr(features, name, None) for name in READ_BY])
    table = remembered(path, asked, lambda: read_matrix(path, features), is_small)
    return marked(checked(table, cfg, path), path, cfg)


def is_small(table: Table) -> bool:
    """Return whether a table is in memory, and small enough to be kept for a second reading."""
    return type(table.data) is np.ndarray and table.data.nbytes <= LARGEST_KEPT


def checked(table: Table, cfg: DataConfig, where: object) -> Table:
    """Return a table as read in a form whose rows are fast to gather. Raise InputError if it cannot be used."""
    check_matrix(table.data, str(where))
    if cfg.rows is not None and table.grid is None and not getattr(cfg, "flat", False):
        raise InputError(
            f"{override('rows', cfg.rows)}: {where} has two dimensions, of which the first counts the rows: "
            "leave it out, or add data.transpose=true where the second one does"
        )
    if cfg.transpose and table.columns is not None:
        raise InputError(
            "data.columns and data.drop go with rows of samples: not together with data.transpose"
        )
    with damaged(where):
        table.data = usable(table.data, cfg.transpose, table.columns)
    if cfg.missing_codes and not is_sparse(table.data) and table.data.dtype.kind in "iuf":
        table.data, found = without_codes(table.data, cfg.missing_codes)
        codes = ", ".join(f"{code:g}" for code in cfg.missing_codes)
        table.notes.append(f"{where}: {found} values are missing, by their code ({codes})")
    if cfg.transpose:
        # The row labels of the file are now the names of the features.
        table.names, table.labels, table.line_of, table.grid = table.labels, table.names, None, None
    return without_names(table, where)
