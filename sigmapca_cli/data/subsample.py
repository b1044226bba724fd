"""Choice of rows of large data if part of them is enough: evenly spaced, or one from each stretch.

A `RowSample` is what one pass over a file keeps, to measure what needs rows, so that no second pass is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.implicit import WIDE

Index = NDArray[np.int64]


def evenly_spaced(n: int, most: int) -> Index:
    """Return at most `most` of the numbers 0 to n − 1, evenly spaced, in order, with the first and the last.

    The stride is nearly constant. It is for pictures, previews and checks; for sums over rows take
    `one_per_stretch`, because a constant stride can match the period of the rows of an image.
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def one_per_stretch(n: int, count: int, seed: int = 0) -> Index:
    """Return `count` of the numbers 0 to n − 1, one at random from each of `count` equal stretches, in order.

    The same numbers on every call. A constant stride can match the period of the rows of an image: the residual of
    the Newton solver was 0.1 on all rows then, instead of 0.003.
    """
    jitter = np.random.default_rng(seed).random(count)
    return ((np.arange(count) + jitter) * (n / count)).astype(np.int64)


def by_weight(weights: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return sorted rows in proportion to their weights (n,), of mean 1: as many as are worth (Σw)²/Σw², or `most`.

    They are drawn at equal steps of the sum of the weights. Of equal weights each row is taken once.
    """
    w = np.ravel(weights)
    count = max(1, min(most, int(w.sum() ** 2 / np.square(w).sum() + 1e-6)))
    steps = (np.arange(count) + 0.5) * (w.sum() / count)
    return np.minimum(np.searchsorted(np.cumsum(w), steps), len(w) - 1)


MOST_BYTES = 128 << 20
"""Memory of the rows that are kept."""
MOST_ROWS = 1 << 19
"""Largest number of rows that are kept: the kurtosis of Gaussian rows has a standard error of √(24/n) = 0.007 then."""
LEAST_ROWS = 1 << 14
"""Smallest number of rows that are worth keeping: a standard error of 0.04."""


class RowSample:
    """One row of each of `count` equal stretches of n rows, collected from blocks that come in order.

    Where ranks read shares of the rows, each keeps those of its own blocks, which are adjacent.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, count: int) -> None:
        self.index = one_per_stretch(shape[0], count)
        self.count = len(self.index)
        self._rows = np.empty((self.count, shape[1]), dtype)
        self._first = self._last = 0

    @classmethod
    def of(cls, shape: tuple[int, int], dtype: np.dtype) -> RowSample | None:
        """Return an empty collection for rows of a matrix (n, p); None if it would hold all rows, or too few."""
        n, p = shape
        count = min(MOST_ROWS, MOST_BYTES // (p * dtype.itemsize))
        return cls(shape, dtype, count) if p <= WIDE and LEAST_ROWS <= count < n else None

    def take(self, start: int, block: NDArray) -> None:
        """Copy the rows that are kept out of the block whose first row has the number `start`."""
        first, last = self.index.searchsorted([start, start + len(block)])
        self._rows[first:last] = block[self.index[first:last] - start]
        self._first = self._first if self._last else int(first)
        self._last = int(last)

    def blocks(self, size: int) -> Iterator[NDArray]:
        """Yield the rows that were kept, at most `size` at a time."""
        for start in range(self._first, self._last, size):
            yield self._rows[start : min(start + size, self._last)]
