"""Which rows a step sees: a new order every epoch, gathered a few batches at a time."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from sigmapca_cli.processes import cores
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.forked_batches import Gatherer, Gone

log = logging.getLogger("sigmapca")

# Rows gathered at once. Each call of NumPy takes the interpreter's lock from the thread that trains, so few calls on
# many rows; more rows than this leave the cache.
BLOCK_ROWS = 1024
AHEAD = 2  # blocks gathered before they are needed
PIECE = 1 << 20  # rows sent through the shuffle buffer by one sort


class Batch(NamedTuple):
    """Rows x (b, p), and their mean square E‖x‖², (), where they are centred."""

    x: np.ndarray
    power: np.floating


class Batches:
    """Batches of standardised rows in a new random order every epoch.

    Epoch e is ordered by a generator seeded with (seed, e), so the position (epoch, batch) says all there is
    to know: a resumed run sees the rows that the uninterrupted one would have seen. A last batch of one row
    is left out, since it has no variance. `through` is the size of the buffer that shuffles, None for all rows.
    """

    may_fork = True  # a process of its own may gather: nothing but the source is needed for it

    def __init__(
        self, source: Source, batch_size: int, seed: int, *, centre: bool = False, through: int | None = None
    ) -> None:
        self.source, self.seed, self.centre, self.through = source, seed, centre, through
        self.size = min(batch_size, source.n)
        whole, rest = divmod(source.n, self.size)
        self.per_epoch = whole + (rest >= 2)
        self.block = max(1, BLOCK_ROWS // self.size)  # batches gathered at once
        self.ring: list[np.ndarray] = []
        self.gatherer: Gatherer | None = None

    def order(self, epoch: int) -> np.ndarray:
        """The permutation of the rows in an epoch, (n,)."""
        generator = np.random.default_rng((self.seed, epoch))
        if self.through is not None and self.through < self.source.n:
            return through_buffer(self.source.n, self.through, generator)
        order = np.arange(self.source.n, dtype=kind(self.source.n))
        generator.shuffle(order)  # in place: n may be tens of millions
        return order

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """The batches of one epoch from the batch numbered `first` on; centred on each batch where asked.

        A batch may be looked at until the next one is asked for: its memory is used again.
        """
        if self.gatherer is not None:
            try:
                for batch in self.gatherer.batches(self, epoch, self.ranges(first)):
                    yield batch
                    first += 1
                return
            except Gone:
                self.gatherer.close()
                self.gatherer = None
                log.warning(
                    "the process that gathered batches has ended (out of memory?); going on without it"
                )
        order, ranges = self.order(epoch), self.ranges(first)
        if cores() == 1:
            for numbers in ranges:
                yield from self.gather(order, numbers)
            return
        # Gathering lets go of the interpreter's lock, so a second core does it while the first computes.
        with ThreadPoolExecutor(1, thread_name_prefix="gather") as pool:
            waiting = [pool.submit(self.gather, order, numbers) for numbers in islice(ranges, AHEAD)]
            while waiting:
                ready = waiting.pop(0)
                waiting += [pool.submit(self.gather, order, numbers) for numbers in islice(ranges, 1)]
                yield from ready.result()

    def ranges(self, first: int) -> Iterator[range]:
        """The numbers of the batches of each block, from the batch numbered `first` on."""
        for block in range(first, self.per_epoch, self.block):
            yield range(block, min(block + self.block, self.per_epoch))

    def cut(self, rows: np.ndarray, power: np.ndarray, numbers: range) -> list[Batch]:
        """The batches with these numbers out of a block that holds them one after the other."""
        count = min(numbers.stop * self.size, self.source.n) - numbers.start * self.size
        return [
            Batch(rows[i * self.size : min((i + 1) * self.size, count)], power[i])
            for i in range(len(numbers))
        ]

    def gather(self, order: np.ndarray, numbers: range, buffer: np.ndarray | None = None) -> list[Batch]:
        """The batches with these numbers, in the buffer given or in one of our own."""
        index = order[numbers.start * self.size : numbers.stop * self.size].astype(np.int64)
        buffer = self.buffer(numbers.start) if buffer is None else buffer
        rows = self.source.rows(index, out=buffer[: len(index)])
        whole = len(rows) // self.size * self.size
        return [*self.split(rows[:whole]), *self.split(rows[whole:])]

    def buffer(self, start: int) -> np.ndarray:
        """Where the block that begins with this batch is gathered: new memory for each costs more than the rows."""
        if not self.ring:
            shape = (self.block * self.size, self.source.p)
            self.ring = [np.empty(shape, np.float32) for _ in range(AHEAD + 2)]
        return self.ring[start // self.block % len(self.ring)]

    def split(self, rows: np.ndarray) -> list[Batch]:
        """Batches of equal size out of rows (m·b, p), all centred in one pass; the rest of an epoch is one of its own.

        Few calls on much data: the thread that trains waits for the interpreter's lock at each of them.
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


def through_buffer(n: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """The order, (n,), in which rows 0 … n − 1 leave a buffer of `size` rows, as of tf.data's shuffle.

    The buffer holds the first rows; again and again a random one leaves and the next row takes its place, so
    order[t] < t + size. Whoever leaves at time t took that place when it was last drawn: a stable sort by place
    puts each row behind the one that it follows.
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


def kind(n: int) -> type[np.signedinteger]:
    """The smallest type that counts n rows."""
    return np.int32 if n < 2**31 else np.int64
