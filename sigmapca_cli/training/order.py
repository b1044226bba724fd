"""The order in which an epoch takes the rows: a permutation, or what a shuffle buffer makes of their own order."""

from __future__ import annotations

import numpy as np

PIECE = 1 << 20
"""Rows sent through the shuffle buffer by one sort."""


def kind(n: int) -> type[np.signedinteger]:
    """Return the smallest integer type that counts n rows."""
    return np.int32 if n < 2**31 else np.int64


def random_order(n: int, generator: np.random.Generator) -> np.ndarray:
    """Return a random permutation of n rows."""
    order = np.arange(n, dtype=kind(n))
    generator.shuffle(order)  # in place: n may be tens of millions
    return order


def through_buffer(n: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """Return the order, (n,), in which rows 0 … n − 1 leave a buffer of `size` rows, as in tf.data's shuffle.

    The buffer holds the first rows. At each time a random row leaves it and the next row takes its place, so
    order[t] < t + size. The row that leaves at time t took that place when the place was last drawn. So a stable sort
    by place puts each row behind the one that it follows.
    """
    order = np.empty(n, kind(n))
    held = np.arange(size, dtype=order.dtype)
    for start in range(size, n, PIECE):
        coming = np.arange(start, min(start + PIECE, n), dtype=order.dtype)
        places = generator.integers(size, size=len(coming), dtype=np.int32 if size < 2**31 else np.int64)
        turn = np.argsort(places, kind="stable")
        places, coming = places[turn], coming[turn]
        new = np.diff(places, prepend=-1) != 0  # the first to be drawn at its place
        leaving = np.roll(coming, 1)
        leaving[new] = held[places[new]]
        order[start - size : start - size + len(coming)][turn] = leaving
        last = np.roll(new, -1)
        held[places[last]] = coming[last]
    generator.shuffle(held)
    order[n - size :] = held
    return order
