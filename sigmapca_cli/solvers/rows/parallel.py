"""Sums over the rows of a matrix, block by block, on several threads: the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.processes import available_threads, blas

Array = np.ndarray

BLOCK_ROWS = 4096
"""Number of rows of a block, up to 32 columns: its arrays stay in the cache."""
ENTRIES = 1 << 16
"""Number of entries of a block of more columns."""
TASK = 16
"""Number of blocks that one thread sums by itself. It is fixed, so that the order of the sum is fixed."""

_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("pool", default=None)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let `total` work on `count` threads inside the block (None: one per core); BLAS then uses one thread each."""
    count = count or available_threads()
    with blas(1):
        if count == 1:
            yield
            return
        with ThreadPoolExecutor(count, thread_name_prefix="solver") as pool:
            token = _pool.set(pool)
            try:
                yield
            finally:
                _pool.reset(token)


def rows_per_block(k: int) -> int:
    """Return the number of rows of a block of k columns, so that the arrays of one block stay in the cache."""
    return BLOCK_ROWS if k <= 32 else max(ENTRIES // k, 256)


def total(
    part: Callable[[Array], tuple[Array, ...]], rows: Array, block: int = BLOCK_ROWS, task: int = TASK
) -> tuple[Array, ...]:
    """Return Σ part(block) over the blocks of the rows, in float64, for each array that `part` returns.

    task: number of blocks that one thread sums by itself. Where ranks hold shares of the rows (`shares`), `rows` are
    those of this rank, and the sums are over all ranks.
    """
    starts = range(0, max(len(rows), 1), task * block)

    def sum_task(start: int) -> tuple[Array, ...]:
        stop = min(start + task * block, len(rows))
        return sum_tuples(part(rows[i : min(i + block, stop)]) for i in range(start, max(stop, 1), block))

    pool = _pool.get()
    return row_shards.added(sum_tuples(map(sum_task, starts) if pool is None else pool.map(sum_task, starts)))


def means(
    part: Callable[[Array], tuple[Array, ...]], rows: Array, block: int = BLOCK_ROWS
) -> tuple[int, list[Array]]:
    """Return the number of rows (of all ranks), and `total` divided by it."""
    if row_shards.sharing() is None:
        return len(rows), [value / len(rows) for value in total(part, rows, block)]
    n, *sums = total(lambda some: (np.array([float(len(some))]), *part(some)), rows, block)
    return int(n[0]), [value / n[0] for value in sums]


def count(rows: Array) -> int:
    """Return the number of rows, of all ranks; a collective."""
    return row_shards.place(rows)[1]


def mean_of(rows: Array) -> Array:
    """Return the mean over the rows (k,), float64, of all ranks."""
    if row_shards.sharing() is None:
        return np.asarray(rows.mean(0, dtype=np.float64))
    return means(lambda some: (some.sum(0, dtype=np.float64),), rows)[1][0]


def std_of(rows: Array) -> Array:
    """Return the biased standard deviation over the rows (k,), float64, of all ranks."""
    if row_shards.sharing() is None:
        return np.asarray(rows.std(0, dtype=np.float64))
    centre = mean_of(rows)
    square = means(lambda some: (np.square(some - centre).sum(0),), rows)[1][0]
    return np.asarray(np.sqrt(square))


def spaced(rows: Array, some: int, place: tuple[int, int]) -> Array:
    """Return one row of each of `some` equal stretches of the rows of all ranks: those in this rank's share.

    place: number of rows before these, and of all. The ranks together choose the rows that one process chooses.
    """
    before, n = place
    index = one_per_stretch(n, some) - before
    return rows[index[(index >= 0) & (index < len(rows))]]


def sum_tuples(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sums of tuples of arrays, float64, added in the order given."""
    first = next(parts)
    sums = tuple(np.array(value, dtype=np.float64) for value in first)
    for values in parts:
        for so_far, value in zip(sums, values, strict=True):
            so_far += value
    return sums
