"""Rows that one pass over a file keeps: a sample to measure what needs rows, so that no second pass is needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.subsample import one_per_stretch

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
