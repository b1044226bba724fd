"""Sums over the rows of a matrix, block by block, on several threads: the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from sigmapca_cli.processes import available_threads, blas

Array = np.ndarray

BLOCK = 4096
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
    return BLOCK if k <= 32 else max(ENTRIES // k, 256)


def total(part: Callable[[Array], tuple[Array, ...]], rows: Array, block: int = BLOCK) -> tuple[Array, ...]:
    """Return Σ part(block) over the blocks of the rows, in float64, for each array that `part` returns."""
    starts = range(0, len(rows), TASK * block)

    def sum_task(start: int) -> tuple[Array, ...]:
        stop = min(start + TASK * block, len(rows))
        return sum_tuples(part(rows[i : min(i + block, stop)]) for i in range(start, stop, block))

    pool = _pool.get()
    return sum_tuples(map(sum_task, starts) if pool is None else pool.map(sum_task, starts))


def sum_tuples(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sums of tuples of arrays, float64, added in the order given."""
    first = next(parts)
    sums = tuple(np.array(value, dtype=np.float64) for value in first)
    for values in parts:
        for so_far, value in zip(sums, values, strict=True):
            so_far += value
    return sums
