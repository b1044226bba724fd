"""Do rows depend on the rows beside them, as samples of a process in time do? One answer for all that asks.

Rows that follow each other in time are no independent rows: their spectra tell components apart, their errors come from
stretches of rows, and two halves are two samples only if they are two stretches.

A table that is sorted by a class also has a correlation of neighbours, and no time: its rows are exchangeable within
every class. So the correlation is asked within short windows of rows, of ranks in the window. If the rows of a window
are exchangeable, whatever their distribution, it has a known mean and variance, and the few windows in which one class
ends and the next begins change nothing.

Rows may depend on those before by their sizes alone, as returns do. Errors and halves need stretches of them, and
spectra say nothing: those of white rows are flat. So spectra count only where values correlate with earlier ones.

References
----------
A. Wald, J. Wolfowitz (1943). An exact test for randomness in the non-parametric case based on serial correlation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.errors import InputError

Array = NDArray[Any]

LEADING = 8
"""Number of leading components whose neighbours are asked."""
ORDER_ROWS = 100_000
"""Largest number of rows that are asked: windows of them, evenly spaced."""
SHORT, LONG = 8, 64
"""Rows of a window. The short one sees the correlation of neighbours; the long one variances that change slowly."""
SHORT_MEAN, SHORT_DEVIATION = -5.25, 12.757
"""Mean −(m² − 1)/12 and standard deviation of Σ r_t r_{t+1} over the centred ranks of SHORT exchangeable rows."""
LONG_MEDIAN = -278.0
"""Median of the same sum of LONG exchangeable rows, by simulation."""
FEWEST = 32
"""Least number of rows for an answer."""
ORDER_LEVEL = 0.001
"""Probability that exchangeable rows are called rows in time."""
LAGS = 16
"""Number of rows back to which values are asked for a correlation."""
SORTED = 0.99
"""A component is a sorted column if its rank correlation with the number of the row is above this in absolute value."""


@dataclass(frozen=True)
class RowOrder:
    """Whether rows have an order.

    Attributes
    ----------
    ordered : bool
        Whether rows depend on their neighbours, or were said to.
    reason : str
        Why: given (data.ordered), sound, windows (of pictures), time (a column of it), neighbours (they depend on each
        other), subjects (several rows of each), exchangeable, sorted (by a class or a column), few (rows).
    white : bool
        Whether the values do not correlate with those of earlier rows, as far as the rows tell; their sizes may.
    """

    ordered: bool
    reason: str
    white: bool = False

    @property
    def in_stretches(self) -> bool:
        """Whether two stretches of rows are two samples, and rows beside each other are not; of pictures they are."""
        return self.ordered and self.reason != "windows"

    @property
    def by_time(self) -> bool:
        """Whether the order is that of time: windows of pictures lie in a plane, subjects in no order."""
        return self.in_stretches and self.reason != "subjects"

    @property
    def in_time(self) -> bool:
        """Whether the rows are in time and coloured, so that spectra say something."""
        return self.by_time and not self.white

    @property
    def words(self) -> str:
        """The reason as part of a sentence."""
        return ORDER_REASONS[self.reason]


ORDER_REASONS = {
    "given": "data.ordered says so",
    "sound": "they are samples of a sound or a recording",
    "windows": "they are windows of pictures",
    "time": "a column counts the time",
    "neighbours": "neighbours depend on each other",
    "subjects": "rows of one subject are no samples of their own",
    "exchangeable": "neighbours do not depend on each other",
    "sorted": "neighbours are alike because the rows are sorted, not in time",
    "few": "they are too few to ask",
}


def row_order(source: Any, Y: Array, index: Array | None = None) -> RowOrder:
    """Return whether the rows of a source have an order, by what is known of it, else by its components Y (m, k).

    source: has `ordered`, `timed`, `pieces`, `sample_rate`, `windows`, `copies` and `by_subject` as `Source` has them.
    index (m,): numbers of the rows of Y; those from 0 on unless given.
    """
    known = {"windows": source.windows, "sound": source.sample_rate is not None, "time": source.timed}
    reason = next((name for name, holds in known.items() if holds), None)
    if source.ordered is False or (source.ordered and reason != "windows"):
        return RowOrder(bool(source.ordered), "given")
    if reason is not None and reason != "time":
        return RowOrder(True, reason)
    index = np.arange(len(Y)) if index is None else index
    if source.copies is not None:  # a table that is written twice follows nothing
        first = source.copies.distinct(index)[0]
        Y, index = Y[first], index[first]
    pieces = pieces_of(source, index)
    if reason is not None:
        return RowOrder(True, reason, is_white(Y, pieces))
    found = order_of(Y, pieces)
    # Rows of one subject are alike, whatever their order: errors come from stretches, and spectra say nothing.
    return RowOrder(True, "subjects", True) if source.by_subject and not found.ordered else found


def order_in(source: Any) -> RowOrder:
    """Return whether the rows of a source have an order, from the leading components of its first rows."""
    Y, index = leading_rows(source)
    return row_order(source, Y, index) if Y.shape[1] else RowOrder(False, "exchangeable")


def leading_rows(source: Any) -> tuple[Array, Array]:
    """Return the leading components (m, k) of the first rows of a source, and the numbers of these rows."""
    axes = source.leading_axes(LEADING)
    index = np.arange(min(source.n, ORDER_ROWS))
    return np.concatenate(list(source.project(axes.up_to(min(axes.rank, LEADING)), index))), index


def pieces_of(source: Any, index: Array) -> tuple[int, ...]:
    """Return where new pieces begin among the rows of an increasing index (m,) of a source, without 0."""
    first = np.unique(np.searchsorted(index, np.asarray(source.pieces, np.int64)))
    return tuple(first[(first > 0) & (first < len(index))].tolist())


def order_of(Y: Array, pieces: Sequence[int] = ()) -> RowOrder:
    """Return whether rows Y (n, k) depend on their neighbours; columns: components by decreasing variance.

    pieces: first rows of files, subjects and stretches after a gap; no window goes across them.
    """
    edges, leading = checked_pieces(pieces, len(Y)), np.asarray(Y)[:, :LEADING]
    if len(edges) == 2:
        leading = without_copies(leading)
        edges = np.array([0, len(leading)])
    if len(leading) < FEWEST:
        return RowOrder(False, "few")
    bound = ORDER_LEVEL / (4 * leading.shape[1])
    for length in (SHORT, LONG):
        if window_test(leading, edges, length) < bound:
            return RowOrder(True, "neighbours", is_white(leading, edges[1:-1].tolist()))
    alike = len(edges) == 2 and neighbours_alike(leading[:ORDER_ROWS])
    return RowOrder(False, "sorted" if alike else "exchangeable")


def is_white(Y: Array, pieces: Sequence[int] = ()) -> bool:
    """Return whether the values of rows Y (n, k) correlate with none of the LAGS rows before, beyond chance.

    The error of a correlation is that of its own products, which holds for values whose sizes change slowly.
    """
    from scipy.special import ndtri

    rows = np.asarray(Y, dtype=np.float64)[:ORDER_ROWS, :LEADING]
    edges = checked_pieces([first for first in pieces if first < len(rows)], len(rows))
    rows = rows - rows.mean(axis=0)
    bound = -ndtri(ORDER_LEVEL / (2 * LAGS * rows.shape[1]))
    for lag in range(1, LAGS + 1):
        parts = [rows[a + lag : b] * rows[a : b - lag] for a, b in itertools.pairwise(edges) if b - a > lag]
        moved = np.concatenate(parts) if parts else np.zeros((1, rows.shape[1]))
        if (np.abs(moved.sum(axis=0)) > bound * np.sqrt(np.square(moved).sum(axis=0))).any():
            return False
    return True


def checked_pieces(pieces: Sequence[int], n: int) -> NDArray[np.int64]:
    """Return the edges of the pieces, from 0 to n. Raise InputError if they do not lie in the rows."""
    inner = np.unique(np.asarray(pieces, dtype=np.int64))
    if len(inner) and (inner[0] < 0 or inner[-1] >= n):
        raise InputError(f"pieces begin at rows 0 to {n - 1}; {inner[0]} to {inner[-1]} were given")
    return np.concatenate([[0], inner[inner > 0], [n]])


def without_copies(Y: Array) -> Array:
    """Return rows without those that repeat the row before, if rows are equal only where they are repeated.

    A row that is written several times counts more, and says nothing of time.
    """
    scale = np.maximum(np.abs(Y).max(axis=0, initial=0.0), 1e-300)
    rounded = np.round(Y / scale, 6)
    new = np.concatenate([[True], (rounded[1:] != rounded[:-1]).any(axis=1)])
    if new.all() or len(np.unique(rounded, axis=0)) < new.sum():
        return Y
    return Y[new]


def window_test(Y: Array, edges: NDArray[np.int64], length: int) -> float:
    """Return the least probability, over columns and their distances from the median, of what the windows show.

    That is of exchangeable rows. Short windows go by the mean of their correlations, long ones by the signs, which the
    ends of a few sorted classes cannot turn. Ties are broken at random, as if the values had more digits.
    """
    firsts = [np.arange(a, b - length + 1, length) for a, b in itertools.pairwise(edges)]
    starts = np.concatenate(firsts)
    most = max(ORDER_ROWS // length, 1)
    if len(starts) > most:
        starts = starts[np.linspace(0, len(starts) - 1, most).astype(np.int64)]
    if len(starts) < 2:
        return 1.0
    values = np.asarray(Y)[starts[:, None] + np.arange(length)].astype(np.float64)  # (windows, length, k)
    centre = np.median(values, axis=(0, 1))
    both = np.concatenate([values, np.abs(values - centre)], axis=2)
    noise = np.random.default_rng(0).random((len(starts), length, 1))
    ranks = np.lexsort((np.broadcast_to(noise, both.shape), both), axis=1).argsort(axis=1) - (length - 1) / 2
    moved = (ranks[:, 1:] * ranks[:, :-1]).sum(axis=1)  # (windows, 2k)
    varying = ~(_rows_sorted(values) | (np.ptp(values, axis=(0, 1)) == 0))
    varying = np.concatenate([varying, varying])
    if not varying.any():
        return 1.0
    return _probability(moved[:, varying], length)


def _probability(moved: Array, length: int) -> float:
    """Return the least probability over columns of the sums Σ r_t r_{t+1} of windows, (windows, columns)."""
    from scipy.special import bdtr, ndtr

    count = len(moved)
    if length == SHORT:
        score = np.abs(((moved - SHORT_MEAN) / SHORT_DEVIATION).mean(axis=0)) * np.sqrt(count)
        return float(2 * ndtr(-score.max()))
    above = (moved > LONG_MEDIAN).sum(axis=0)
    return float(np.minimum(2 * bdtr(np.minimum(above, count - above), count, 0.5), 1.0).min())


def _rows_sorted(values: Array) -> NDArray[np.bool_]:
    """Return which columns of windows (windows, length, k) only rise, or only fall, nearly."""
    flat = values.reshape(-1, values.shape[2])
    ranks = flat.argsort(axis=0, kind="stable").argsort(axis=0)
    place = np.arange(len(flat)) - (len(flat) - 1) / 2
    correlation = place @ ranks / np.square(place).sum()
    return np.asarray(np.abs(correlation) > SORTED)


def _ranks(values: Array) -> Array:
    """Return the ranks of values (n,), equal values with the mean of theirs; scipy.stats takes seconds to import."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def neighbours_alike(Y: Array) -> bool:
    """Return whether neighbours are correlated over all of these rows, by ranks."""
    from scipy.special import ndtri

    ranks = np.column_stack([_ranks(column) for column in Y.T])
    ranks -= ranks.mean(0)
    spread = np.maximum(np.square(ranks).mean(0), 1e-300)
    lagged = (ranks[1:] * ranks[:-1]).mean(0) / spread
    return bool(np.abs(lagged).max() * np.sqrt(len(Y)) > -ndtri(ORDER_LEVEL / (2 * Y.shape[1])))
