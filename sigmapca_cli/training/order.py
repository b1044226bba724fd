"""The order in which an epoch takes the rows: a permutation in memory, or of very many rows one that is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

PIECE = 1 << 20
"""Rows sent through the shuffle buffer by one sort."""
MOST_HELD = 1 << 28
"""Rows up to which a permutation is held: 1 GB. To shuffle more takes minutes, of which a run may use a small part."""
ROUNDS = 6
"""Rounds of the computed permutation."""
WEYL, MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Constants of splitmix64 (Steele, Lea and Flood 2014)."""


def kind(n: int) -> type[np.signedinteger]:
    """Return the smallest integer type that counts n rows."""
    return np.int32 if n < 2**31 else np.int64


@dataclass(frozen=True)
class Scattered:
    """A permutation of 0 … n − 1 that is computed where it is asked for: `order[start:stop]`, int64.

    A Feistel network permutes the numbers of 2·half bits, the fewest that n numbers need. A number that comes out as n
    or more goes in again, so that the numbers below n are permuted among themselves. place: what a position is in the
    permutation, for the share of a rank.
    Source: Black and Rogaway (2002), Ciphers with arbitrary finite domains (cycle walking).
    """

    n: int
    keys: tuple[int, ...]
    count: int
    place: Callable[[np.ndarray], np.ndarray] | None = None

    @classmethod
    def of(cls, n: int, generator: np.random.Generator) -> Scattered:
        """Return the permutation of n rows of a generator."""
        return cls(n, tuple(int(key) for key in generator.integers(2**63, size=ROUNDS)), n)

    def share(self, count: int, place: Callable[[np.ndarray], np.ndarray]) -> Scattered:
        """Return `count` of the rows, whose positions in the permutation are place(0 … count − 1)."""
        return replace(self, count=count, place=place)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: slice) -> np.ndarray:
        positions = np.arange(*at.indices(self.count), dtype=np.int64)
        return self.at(positions if self.place is None else self.place(positions))

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Return the rows at these positions of the permutation."""
        out = self._network(positions.astype(np.uint64))
        while (outside := out >= self.n).any():
            out[outside] = self._network(out[outside])
        return out.astype(np.int64)

    def _network(self, numbers: np.ndarray) -> np.ndarray:
        half = np.uint64(max(1, ((self.n - 1).bit_length() + 1) // 2))
        mask = np.uint64((1 << int(half)) - 1)
        left, right = numbers >> half, numbers & mask
        for key in self.keys:
            mixed = (right + np.uint64(key)) * WEYL
            mixed = (mixed ^ (mixed >> np.uint64(30))) * MIX
            left, right = right, left ^ ((mixed >> np.uint64(31)) & mask)
        return (left << half) | right


Order = np.ndarray | Scattered


def random_order(n: int, generator: np.random.Generator) -> Order:
    """Return a random permutation of n rows."""
    if n > MOST_HELD:
        return Scattered.of(n, generator)
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
