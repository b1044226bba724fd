"""Sums over the rows of a matrix, block by block, on several threads: the same bits for any number of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from sigmapca_cli.processes import available_threads, blas

Array = np.ndarray

BLOCK = 4096
"""Rows whose arithmetic stays in the cache."""
ENTRIES = 1 << 16
"""Entries of a block of wider rows."""
TASK = 16
"""Blocks that one thread adds up by itself. A fixed number, so that the order of the sum is fixed."""

_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("pool", default=None)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Inside, `total` works on so many threads (None: as many as there are cores), each with products of its own."""
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


def fitting(k: int) -> int:
    """Rows of k columns a block, so that the few arrays of one block stay in the cache."""
    return BLOCK if k <= 32 else max(ENTRIES // k, 256)


def total(part: Callable[[Array], tuple[Array, ...]], rows: Array, block: int = BLOCK) -> tuple[Array, ...]:
    """Σ part(block of rows) in float64, each of its arrays for itself."""
    starts = range(0, len(rows), TASK * block)

    def some(start: int) -> tuple[Array, ...]:
        stop = min(start + TASK * block, len(rows))
        return added(part(rows[i : min(i + block, stop)]) for i in range(start, stop, block))

    pool = _pool.get()
    return added(map(some, starts) if pool is None else pool.map(some, starts))


def added(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """The sum of tuples of arrays, in float64, in their order."""
    first = next(parts)
    sums = tuple(np.array(value, dtype=np.float64) for value in first)
    for values in parts:
        for so_far, value in zip(sums, values, strict=True):
            so_far += value
    return sums


def spread(n: int, count: int, seed: int = 0) -> Array:
    """Numbers of `count` of n rows, one from each of as many equal stretches, the same ones every time.

    A fixed stride would lock onto the period of image rows (seen: residual 0.1 instead of 0.003 on all rows).
    """
    jitter = np.random.default_rng(seed).random(count)
    return ((np.arange(count) + jitter) * (n / count)).astype(np.int64)
