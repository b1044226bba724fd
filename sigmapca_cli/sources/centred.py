"""Products with rows that are centred and scaled in float64, a tile at a time: no matrix of float64 rows is made.

New memory for a block of rows costs more than the arithmetic on it. So rows become float64 in memory that each thread
uses again. Threads take blocks of rows; of very many features (`MANY`) they take slices of the features of one block,
because then a block has few rows, and the sum of one block alone has p numbers a column.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli import shares
from sigmapca_cli.processes import mapped
from sigmapca_cli.sources.statistics import workspace

Array = NDArray[np.float64]

MANY = 1 << 14
"""Features beyond which threads take slices of the features."""
PRODUCT_ENTRIES = 1 << 20
"""Number of entries of a block of rows of one product."""
READ_ENTRIES = 1 << 26
"""Largest number of entries of a block of rows of very many features, as they are stored: 256 MB of float32."""
TILE_ENTRIES = 1 << 17
"""Number of float64 entries of a tile: 1 MB, which stays in the cache of a core."""
GRAM_BLOCK = 2048
"""Largest number of rows of a block of the Gram matrix."""


@dataclass(frozen=True)
class CentredRows:
    """Rows x̄ = (raw · unit − mean) ⊙ gain of n rows of p features.

    gather: (start, stop) ↦ raw rows (m, p) in their stored type; mean, gain (p,).
    """

    gather: Callable[[int, int], NDArray]
    n: int
    p: int
    unit: float
    mean: Array
    gain: Array

    def tile(self, raw: NDArray, columns: slice, out: Array | None = None) -> Array:
        """Return x̄ (m, c) of these columns of raw rows, in memory that is valid until this thread asks again."""
        if out is None:
            out = workspace(raw[:, columns].shape)
        out[...] = raw[:, columns]
        if self.unit != 1.0:
            out *= self.unit
        out -= self.mean[columns]
        out *= self.gain[columns]
        return out

    def times(self, W: Array) -> Array:
        """Return x̄ᵀ(x̄W) (p, b) for W (p, b): the sum over the rows of this rank's share."""
        total, parts = np.zeros(W.shape), self._own_parts(self._rows(W.shape[1]))
        if self.p > MANY:
            for bounds in parts:
                raw = self.gather(*bounds)
                self._add_back(total, raw, self._projected(raw, W))
            return total

        def part(bounds: tuple[int, int]) -> Array:
            x = self.tile(self.gather(*bounds), slice(None))
            return np.asarray(x.T @ (x @ W))

        for found in mapped(part, parts):
            total += found
        return total

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order."""
        parts = parts_of(range(self.n), self._rows(W.shape[1]))
        if self.p > MANY:
            yield from (self._projected(self.gather(*bounds), W) for bounds in parts)
        else:
            yield from mapped(lambda bounds: self.tile(self.gather(*bounds), slice(None)) @ W, parts)

    def gram(self) -> Array:
        """Return x̄x̄ᵀ (n, n). The rows are read once, or once for every block before them."""
        parts = list(parts_of(range(self.n), min(GRAM_BLOCK, self._read_rows())))
        G = np.empty((self.n, self.n))
        for i, (start, stop) in enumerate(parts):
            raw = self.gather(start, stop)
            G[start:stop, start:stop] = self._cross(raw, None)
            for left, right in parts[i + 1 :]:
                G[start:stop, left:right] = self._cross(raw, self.gather(left, right))
                G[left:right, start:stop] = G[start:stop, left:right].T
        return G

    def transposed(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m) for U (n, m): the sum over the rows of this rank's share."""
        total = np.zeros((self.p, U.shape[1]))
        for start, stop in self._own_parts(self._read_rows()):
            self._add_back(total, self.gather(start, stop), U[start:stop])
        return total

    def _projected(self, raw: NDArray, W: Array) -> Array:
        """Return x̄W (m, b) of a block of raw rows."""
        total = np.zeros((len(raw), W.shape[1]))
        for found in mapped(lambda c: self.tile(raw, c) @ W[c], self._columns(len(raw))):
            total += found
        return total

    def _add_back(self, total: Array, raw: NDArray, Y: Array) -> None:
        """Add x̄ᵀY to `total` (p, b) for a block of raw rows and Y (m, b)."""

        def add(columns: slice) -> None:
            total[columns] += self.tile(raw, columns).T @ Y

        deque(mapped(add, self._columns(len(raw))), maxlen=0)

    def _cross(self, left: NDArray, right: NDArray | None) -> Array:
        """Return x̄x̄′ᵀ of two blocks of raw rows; None: of the first with itself."""
        a, b = len(left), len(left if right is None else right)

        def product(columns: slice) -> Array:
            if right is None:
                x = self.tile(left, columns)
                return x @ x.T
            both = workspace((a + b, columns.stop - columns.start))
            return self.tile(left, columns, both[:a]) @ self.tile(right, columns, both[a:]).T

        total = np.zeros((a, b))
        # Slices at least as wide as the blocks are high: else adding the products takes as long as making them.
        for found in mapped(product, self._columns(a + b, least=2 * max(a, b))):
            total += found
        return total

    def _columns(self, rows: int, least: int = 64) -> Iterator[slice]:
        width = max(TILE_ENTRIES // max(rows, 1), least)
        return (slice(start, min(start + width, self.p)) for start in range(0, self.p, width))

    def _rows(self, columns: int) -> int:
        """Rows of a block: more than there are columns, for a fast product; few, that they stay in the cache."""
        if self.p > MANY:
            return self._read_rows()
        return max(PRODUCT_ENTRIES // self.p, 4 * columns, 16)

    def _read_rows(self) -> int:
        return max(READ_ENTRIES // self.p, 16)

    def _own_parts(self, size: int) -> Iterator[tuple[int, int]]:
        own = shares.own(self.n)
        return parts_of(range(own.start, own.stop), size)


def parts_of(rows: range, size: int) -> Iterator[tuple[int, int]]:
    """Return (start, stop) of the blocks of `size` rows of a stretch of rows."""
    return pairwise([*rows[::size], rows.stop])
