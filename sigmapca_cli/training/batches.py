"""Which rows a step sees: a new order every epoch, gathered a few batches at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.source import Source
from sigmapca_cli.system.processes import cores

# Rows and entries gathered at once, at most. Each call of NumPy takes the interpreter's lock from the thread that
# trains, so few calls on many rows are best: with 1,024 patches at once a step takes 2 to 11 % longer.
BLOCK_ROWS = 4096
BLOCK_ENTRIES = 1024 * WIDE
AHEAD = 2  # blocks gathered before they are needed


class Batch(NamedTuple):
    """Rows x (b, p), and their mean square E‖x‖², (), where they are centred."""

    x: np.ndarray
    power: np.floating


class Batches:
    """Batches of standardised rows in a new random order every epoch.

    A generator seeded with (seed, e) orders epoch e. So the position (epoch, batch) determines the rows: a resumed
    run sees the rows that the uninterrupted one would have seen. A last batch of one row is left out, since it has no
    variance. `through` is the size of the buffer that shuffles, None for all rows.
    """

    def __init__(
        self, source: Source, batch_size: int, seed: int, *, centre: bool = False, through: int | None = None
    ) -> None:
        self.source, self.seed, self.centre, self.through = source, seed, centre, through
        self.size = min(batch_size, source.n)
        self.per_epoch = batches_per_epoch(source.n, batch_size)
        self.block = max(1, rows_at_once(source.p) // self.size)  # batches gathered at once
        self.ring: list[np.ndarray] = []
        self.cores = cores()

    def prepare(self, centred: bool) -> None:
        """Set whether rows come centred on their batch, with their mean square, as the step of this run wants."""
        self.centre = centred

    def order(self, epoch: int) -> np.ndarray:
        """Return the permutation of the rows in an epoch, (n,)."""
        generator = np.random.default_rng((self.seed, epoch))
        if self.through is not None and self.through < self.source.n:
            return through_buffer(self.source.n, self.through, generator)
        return random_order(self.source.n, generator)

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of one epoch from the batch numbered `first` on.

        A batch is only valid until the next one is requested: buffers are reused.
        """
        order, ranges = self.order(epoch), self.ranges(first)
        if self.per_epoch - first <= self.block or self.cores == 1:  # there is nothing to gather meanwhile
            for numbers in ranges:
                yield from self.gather(order, numbers)
            return
        # Gathering releases the interpreter's lock, so a second core does it while the first one computes.
        with ThreadPoolExecutor(1, thread_name_prefix="gather") as pool:
            waiting = [pool.submit(self.gather, order, numbers) for numbers in islice(ranges, AHEAD)]
            while waiting:
                ready = waiting.pop(0)
                waiting += [pool.submit(self.gather, order, numbers) for numbers in islice(ranges, 1)]
                yield from ready.result()

    def ranges(self, first: int) -> Iterator[range]:
        """Yield the numbers of the batches of each block, from the batch numbered `first` on."""
        for block in range(first, self.per_epoch, self.block):
            yield range(block, min(block + self.block, self.per_epoch))

    def gather(self, order: np.ndarray, numbers: range) -> list[Batch]:
        """Return the batches with these numbers, written into a buffer of our own."""
        index = order[numbers.start * self.size : numbers.stop * self.size].astype(np.int64)
        rows = self.source.take(index, out=self.buffer(numbers.start)[: len(index)])
        whole = len(rows) // self.size * self.size
        return [*self.split(rows[:whole]), *self.split(rows[whole:])]

    def buffer(self, start: int) -> np.ndarray:
        """Return the buffer of the block that begins with this batch. New memory for each costs more than the rows."""
        if not self.ring:
            shape = (self.block * self.size, self.source.p)
            self.ring = [np.empty(shape, np.float32) for _ in range(AHEAD + 2)]
        return self.ring[start // self.block % len(self.ring)]

    def split(self, rows: np.ndarray) -> list[Batch]:
        """Cut rows (m·b, p) into m batches, all centred in one pass; fewer than b rows are one batch.

        Few calls on much data: at each of them the thread that trains waits for the interpreter's lock.
        """
        if not len(rows):
            return []
        b = min(self.size, len(rows))
        x = rows.reshape(-1, b, rows.shape[1])
        power = np.zeros(len(x), rows.dtype)
        if self.centre:
            x -= np.matmul(np.full((1, b), 1 / b, x.dtype), x)
            flat = x.reshape(len(x), -1)
            power = np.einsum("ij,ij->i", flat, flat)
            power /= b
        return [Batch(*pair) for pair in zip(x, power, strict=True)]


class StackedBatches:
    """The batches of R runs with different seeds as batches of rows (R, b, p)."""

    def __init__(self, runs: Sequence[Batches]) -> None:
        self.runs = runs

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of one epoch from the batch numbered `first` on."""
        for batches in zip(*(run.epoch(epoch, first) for run in self.runs), strict=True):
            yield Batch(np.stack([batch.x for batch in batches]), batches[0].power)


def batches_per_epoch(n: int, batch_size: int) -> int:
    """Return the number of batches of n rows; a last batch of one row is left out."""
    whole, rest = divmod(n, min(batch_size, n))
    return whole + (rest >= 2)


def rows_at_once(p: int) -> int:
    """Return the number of rows of p features that are gathered at once: fewer than usual where they are wide."""
    return min(BLOCK_ROWS, max(1, BLOCK_ENTRIES // p))


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
