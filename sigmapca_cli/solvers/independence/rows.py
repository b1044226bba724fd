"""Rows with weights, and means over them: what every sum of solver=independence is made of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers.rows.inputs import checked_rows, held
from sigmapca_cli.solvers.rows.parallel import BLOCK_ROWS, TASK, spaced, total
from sigmapca_cli.system.row_shards import place, shared

Array = np.ndarray
ENTRIES = 1 << 16
"""Number of entries of a block of rows: its arrays stay in the cache."""
BLOCKS_OF_ONE_THREAD = 4
"""Number of such blocks up to which one thread sums all rows: waking another takes as long."""
Part = Callable[[Array, Array | None], tuple[Array, ...]]
"""From z (m, k) and the weights of its rows (m, 1), None where all are 1, to sums over the rows."""


@dataclass(frozen=True)
class Rows:
    """n rows of k components in all ranks, with weights.

    held (n, k) or (n, k + 1): the rows of this rank, in the type they came in, and their weights if there are any;
    mass: sum of the weights, n without; mean (k,) and C (k, k): weighted mean and covariance, float64.
    """

    held: Array
    k: int
    n: int
    mass: float
    mean: Array
    C: Array

    @classmethod
    def of(cls, Y: Array, weights: Array | None = None) -> Rows:
        """Return the rows of Y (n, k) with weights (n,). Raise InputError if they cannot be used."""
        rows = held(checked_rows(Y, None, "independence"), weights)
        return cls._measured(np.ascontiguousarray(rows), Y.shape[1])

    @classmethod
    def _measured(cls, held: Array, k: int) -> Rows:
        def part(block: Array) -> tuple[Array, ...]:
            y = block[:, :k].astype(np.float64, copy=False)
            w = np.ones((len(y), 1)) if block.shape[1] == k else block[:, k:].astype(np.float64, copy=False)
            wy = y * w
            return np.array([float(len(y)), w.sum()]), wy.sum(0), y.T @ wy

        (n, mass), first, second = blockwise(part, held, k)
        mean = first / mass
        return cls(held, k, int(n), float(mass), mean, second / mass - np.outer(mean, mean))

    def subset(self, count: int) -> Rows:
        """Return one row of each of `count` equal stretches of all rows; these rows, if there are not as many."""
        if count >= self.n:
            return self
        return Rows._measured(np.ascontiguousarray(spaced(self.held, count, place(self.held))), self.k)

    def subset_or_all(self, count: int) -> Rows:
        """Return a subset if it has less than half of the rows; these rows otherwise."""
        return self.subset(count) if 2 * count < self.n else self

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that would give means of the same error: (Σw)²/Σw², of all ranks."""
        if self.held.shape[1] == self.k:
            return float(self.n)
        squares = total(lambda block: (np.square(block[:, self.k :]).sum(0),), self.held)[0]
        return self.mass**2 / float(squares[0])

    def groups(self, count: int) -> list[Rows]:
        """Return about `count` groups of neighbouring rows, of all ranks together; those of this rank, same mean."""
        mine = max(1, round(count * len(self.held) / self.n))
        return [replace(self, held=part) for part in np.array_split(self.held, mine)]

    def means(self, part: Part, M: Array, *, alone: bool = False) -> list[Array]:
        """Return Σ part(z, w)/Σw over the rows z = (y − mean)M of all ranks, for each array that `part` returns.

        alone: the sums are over the rows of this rank only; the divisor is that of all ranks.
        """
        shift = self.mean @ M

        def of_block(block: Array) -> tuple[Array, ...]:
            weights = block[:, self.k :].astype(np.float64, copy=False) if block.shape[1] > self.k else None
            z = block[:, : self.k].astype(np.float64, copy=False) @ M
            z -= shift
            return part(z, weights)

        with shared(None) if alone else nullcontext():
            return [value / self.mass for value in blockwise(of_block, self.held, self.k)]


def blockwise(part: Callable[[Array], tuple[Array, ...]], held: Array, k: int) -> tuple[Array, ...]:
    """Return Σ part(block) over blocks of the held rows of k components; their sizes depend on n and k alone."""
    block = int(np.clip(ENTRIES // k, 256, BLOCK_ROWS))
    few = len(held) * k <= BLOCKS_OF_ONE_THREAD * ENTRIES
    return total(part, held, block, TASK if few else int(np.clip(len(held) // (TASK * block), 1, TASK)))
