"""Products with rows that are centred and scaled in float64, a tile at a time: no matrix of float64 rows is made.

New memory for a block of rows costs more than the arithmetic on it. So rows become float64 in memory that each thread
uses again. Threads take blocks of rows; of very many features (`MANY`) they take slices of the features of one block,
because then a block has few rows, and the sum of one block alone has p numbers a column. Rows in a file are then read
slice by slice too (`scratch.RowSlices`), so that even one block is never held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli import shares
from sigmapca_cli.processes import mapped
from sigmapca_cli.sources.statistics import MANY, TILE_ENTRIES, TILE_WIDTH, workspace

Array = NDArray[np.float64]

PRODUCT_ENTRIES = 1 << 20
"""Number of entries of a block of rows of one product."""
BLOCK_ROWS = 128
"""Rows of a block of very many features."""
READ_ENTRIES = 1 << 22
"""Entries that are read at once of such a block: 16 MB of float32."""
READS = 16
"""Least number of slices that a block of very many features is read in, so that threads share them evenly."""
GRAM_BLOCK = 2048
"""Largest number of rows of a block of the Gram matrix."""


@dataclass(frozen=True)
class CentredRows:
    """Rows x̄ = (raw · unit − mean) ⊙ gain of n rows of p features.

    gather: (start, stop) ↦ raw rows (m, p) in their stored type, or what gives them by slices `[:, columns]`; mean,
    gain (p,).
    """

    gather: Callable[[int, int], Any]
    n: int
    p: int
    unit: float
    mean: Array
    gain: Array

    def tile(self, raw: NDArray, columns: slice, out: Array) -> Array:
        """Return `out` (m, c), filled with x̄ of these columns, of which `raw` (m, c) are the raw rows."""
        out[...] = raw
        if self.unit != 1.0:
            out *= self.unit
        out -= self.mean[columns]
        out *= self.gain[columns]
        return out

    def whole(self, raw: NDArray) -> Array:
        """Return x̄ (m, p) of raw rows, in memory that is valid until this thread asks again."""
        return self.tile(raw, slice(None), workspace(raw.shape))

    def tiles(self, part: slice, width: int, *blocks: Any) -> Iterator[tuple[slice, list[Array]]]:
        """Yield slices of `width` of some columns, and x̄ (m, width) of each block, valid until the next one."""
        raws = [block[:, part] for block in blocks]
        ends = np.cumsum([0, *map(len, raws)])
        for start in range(part.start, part.stop, width):
            columns = slice(start, min(start + width, part.stop))
            out = workspace((ends[-1], columns.stop - start))
            at = slice(start - part.start, columns.stop - part.start)
            yield (
                columns,
                [
                    self.tile(raw[:, at], columns, out[a:b])
                    for raw, (a, b) in zip(raws, pairwise(ends), strict=True)
                ],
            )

    def times(self, W: Array) -> Array:
        """Return x̄ᵀ(x̄W) (p, b) for W (p, b): the sum over the rows of this rank's share."""
        total, parts = np.zeros(W.shape), self._own_parts(self._rows(W.shape[1]))
        if self.p > MANY:
            for bounds in parts:
                raw = self.gather(*bounds)
                self._add_back(total, raw, self._projected(raw, W))
            return total

        def part(bounds: tuple[int, int]) -> Array:
            x = self.whole(self.gather(*bounds))
            return np.asarray(x.T @ (x @ W))

        for found in mapped(part, parts):
            total += found
        return total

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order; of a rank, of its share."""
        parts = self._own_parts(self._rows(W.shape[1]))
        if self.p > MANY:
            yield from (self._projected(self.gather(*bounds), W) for bounds in parts)
        else:
            yield from mapped(lambda bounds: self.whole(self.gather(*bounds)) @ W, parts)

    def gram(self) -> Array:
        """Return x̄x̄ᵀ (n, n). The rows are read once, or once for every block before them."""
        parts = list(parts_of(range(self.n), GRAM_BLOCK))
        G = np.empty((self.n, self.n))
        for i, (start, stop) in enumerate(parts):
            raw = self.gather(start, stop)
            G[start:stop, start:stop] = self._cross(raw)
            for left, right in parts[i + 1 :]:
                G[start:stop, left:right] = self._cross(raw, self.gather(left, right))
                G[left:right, start:stop] = G[start:stop, left:right].T
        return G

    def transposed(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m) for U (n, m): the sum over the rows of this rank's share."""
        total = np.zeros((self.p, U.shape[1]))
        for start, stop in self._own_parts(BLOCK_ROWS):
            self._add_back(total, self.gather(start, stop), U[start:stop])
        return total

    def _projected(self, raw: Any, W: Array) -> Array:
        """Return x̄W (m, b) of a block of raw rows."""
        width = self._width(len(raw))

        def part(columns: slice) -> Array:
            total = np.zeros((len(raw), W.shape[1]))
            for at, (x,) in self.tiles(columns, width, raw):
                total += x @ W[at]
            return total

        return self._summed(part, self._slices(len(raw), width))

    def _add_back(self, total: Array, raw: Any, Y: Array) -> None:
        """Add x̄ᵀY to `total` (p, b) for a block of raw rows and Y (m, b)."""
        width = self._width(len(raw))

        def add(columns: slice) -> None:
            for at, (x,) in self.tiles(columns, width, raw):
                total[at] += x.T @ Y

        deque(mapped(add, self._slices(len(raw), width)), maxlen=0)

    def _cross(self, *blocks: Any) -> Array:
        """Return x̄x̄′ᵀ of two blocks of raw rows, or of one with itself."""
        rows = max(map(len, blocks))
        # Slices at least as wide as the blocks are high: else adding the products takes as long as making them.
        width = max(self._width(sum(map(len, blocks))), 2 * rows)

        def part(columns: slice) -> Array:
            total = np.zeros((len(blocks[0]), len(blocks[-1])))
            for _, x in self.tiles(columns, width, *blocks):
                total += x[0] @ x[-1].T
            return total

        return self._summed(part, self._slices(sum(map(len, blocks)), width))

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
        step = tiles * width
        return (slice(start, min(start + step, self.p)) for start in range(0, self.p, step))

    def _rows(self, columns: int) -> int:
        """Rows of a block: more than there are columns, for a fast product; few, that they stay in the cache."""
        if self.p > MANY:
            return BLOCK_ROWS
        return max(PRODUCT_ENTRIES // self.p, 4 * columns, 16)

    def _own_parts(self, size: int) -> Iterator[tuple[int, int]]:
        own = shares.own(self.n)
        return parts_of(range(own.start, own.stop), size)


def parts_of(rows: range, size: int) -> Iterator[tuple[int, int]]:
    """Return (start, stop) of the blocks of `size` rows of a stretch of rows."""
    return pairwise([*rows[::size], rows.stop])
