"""Products with rows that are centred and scaled in float64, a block or a tile at a time: no matrix of float64 rows.

New memory for a block of rows costs more than the arithmetic on it. So rows become float64 in memory that each thread
uses again. Threads take blocks of rows; for products with few rows of many features, slices of the features. Rows in a
file are then read slice by slice too (`scratch.RowSlices`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import TILE_ENTRIES, TILE_WIDTH, workspace
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.processes import mapped

Array = NDArray[np.float64]

PRODUCT_ENTRIES = 1 << 20
"""Number of entries of a block of rows of one product."""
BLOCK_ROWS = 128
"""Rows of a block whose features threads share."""
READ_ENTRIES = 1 << 22
"""Entries that are read at once of such a block: 16 MB of float32."""
READS = 16
"""Least number of slices that a block of very many features is read in, so that threads share them evenly."""
GRAM_WIDTH = 4096
"""Features of a tile of the Gram matrix of many rows."""


class Products(Protocol):
    """The products with centred and scaled rows x̄ (n, p) that second moments need."""

    def times(self, W: Array) -> Array:
        """Return x̄ᵀ(x̄W) (p, b) for W (p, b): the sum over the rows of this rank's share."""

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order; of a rank, of its share."""

    def gram(self) -> Array:
        """Return x̄x̄ᵀ (n, n)."""

    def transposed(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m) for U (n, m): the sum over the rows of this rank's share."""


@dataclass(frozen=True)
class CentredRows:
    """Rows x̄ = (raw · unit − mean) ⊙ gain of n rows of p features.

    gather: a slice of the rows ↦ raw rows (m, p) in their stored type, or what gives them by slices `[:, columns]`;
    mean, gain (p,).
    """

    gather: Callable[[slice], Any]
    n: int
    p: int
    unit: float
    mean: Array
    gain: Array

    def tile(self, raw: NDArray, columns: slice) -> Array:
        """Return x̄ (m, c) of these columns, of which `raw` (m, c) are the raw rows, until this thread asks again."""
        out = workspace(raw.shape)
        out[...] = raw
        if self.unit != 1.0:
            out *= self.unit
        out -= self.mean[columns]
        out *= self.gain[columns]
        return out

    def tiles(self, raw: Any, part: slice, width: int) -> Iterator[tuple[slice, Array]]:
        """Yield slices of `width` of some columns of raw rows, and x̄ (m, width) of each."""
        read = raw[:, part]
        for start in range(part.start, part.stop, width):
            columns = slice(start, min(start + width, part.stop))
            at = slice(start - part.start, columns.stop - part.start)
            yield columns, self.tile(read[:, at], columns)

    def times(self, W: Array) -> Array:
        """Return x̄ᵀ(x̄W) (p, b) for W (p, b): the sum over the rows of this rank's share."""
        total, parts = np.zeros(W.shape), self._own(self._rows(W.shape[1]))

        def part(rows: slice) -> Array:
            x = self._whole(rows)
            return np.asarray(x.T @ (x @ W))

        for found in mapped(part, parts):
            total += found
        return total

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order; of a rank, of its share."""
        return mapped(lambda rows: self._whole(rows) @ W, self._own(self._rows(W.shape[1])))

    def gram(self) -> Array:
        """Return x̄x̄ᵀ (n, n)."""
        raw = self.gather(slice(0, self.n))
        # Slices wider than there are rows: else adding the products takes as long as making them.
        width = max(self._width(self.n), min(2 * self.n, GRAM_WIDTH))

        def part(columns: slice) -> Array:
            total = np.zeros((self.n, self.n))
            for _, x in self.tiles(raw, columns, width):
                total += x @ x.T
            return total

        return self._summed(part, self._slices(self.n, width))

    def transposed(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m) for U (n, m): the sum over the rows of this rank's share."""
        total = np.zeros((self.p, U.shape[1]))
        for rows in self._own(BLOCK_ROWS):
            self._add_back(total, self.gather(rows), U[rows])
        return total

    def _whole(self, rows: slice) -> Array:
        return self.tile(np.asarray(self.gather(rows)), slice(None))

    def _add_back(self, total: Array, raw: Any, Y: Array) -> None:
        """Add x̄ᵀY to `total` (p, b) for a block of raw rows and Y (m, b)."""
        width = self._width(len(raw))

        def add(columns: slice) -> None:
            for at, x in self.tiles(raw, columns, width):
                total[at] += x.T @ Y

        deque(mapped(add, self._slices(len(raw), width)), maxlen=0)

    def _summed(self, part: Callable[[slice], Array], slices: Iterator[slice]) -> Array:
        """Return the sum of `part` over slices of the features, which threads share."""
        total: Array | None = None
        for found in mapped(part, slices):
            total = found if total is None else np.add(total, found, out=total)
        assert total is not None
        return total

    def _width(self, rows: int) -> int:
        """Features of a tile of so many rows."""
        return max(TILE_ENTRIES // max(rows, 1), TILE_WIDTH)

    def _slices(self, rows: int, width: int) -> Iterator[slice]:
        """Return slices of the features, of whole tiles, that are read at once."""
        tiles = max(min(READ_ENTRIES // max(rows, 1), self.p // READS) // width, 1)
        return stretches(range(self.p), tiles * width)

    def _rows(self, columns: int) -> int:
        """Rows of a block: more than there are columns, for a fast product; few, that they stay in the cache."""
        return max(PRODUCT_ENTRIES // self.p, 4 * columns, 16)

    def _own(self, size: int) -> Iterator[slice]:
        return stretches(row_shards.own(self.n), size)


def stretches(numbers: range, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` adjacent numbers."""
    return (slice(at, min(at + size, numbers.stop)) for at in range(numbers.start, numbers.stop, size))
