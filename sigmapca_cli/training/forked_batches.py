"""Blocks of batches gathered by a process of its own, which writes them into memory that both see.

A thread that gathers takes the interpreter's lock from the thread that trains at every call; a process does not. It is
a fork: it has the data already, asks nothing of anybody, and ends when its pipe does, however the run ends.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sigmapca_cli.processes import cores

if TYPE_CHECKING:
    from sigmapca_cli.training.batches import Batch, Batches

SLOTS = 5
AHEAD = 3  # blocks asked for before they are needed; one more is being looked at
REQUEST = struct.Struct("qqqq")  # epoch, first batch, batch after the last, slot
LEAST_STEPS = 300  # what a fork costs is not worth fewer


class Gone(Exception):
    """The process has ended: killed, or out of memory."""


class Gatherer:
    """The process, the shared memory, and the two pipes between."""

    def __init__(self, batches: Batches) -> None:
        rows, p = batches.block * batches.size, batches.source.p
        size = SLOTS * (rows * p + batches.block) * 4
        self.memory = mmap.mmap(-1, size)
        values = np.frombuffer(self.memory, np.float32)
        self.rows = values[: SLOTS * rows * p].reshape(SLOTS, rows, p)
        self.power = values[SLOTS * rows * p :].reshape(SLOTS, batches.block)
        self.open = True
        request, self.asking = os.pipe()
        self.hearing, answer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # other threads exist; the child runs none of theirs
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self.asking)
            os.close(self.hearing)
            self.serve(batches, request, answer)
        os.close(request)
        os.close(answer)

    def serve(self, batches: Batches, request: int, answer: int) -> NoReturn:
        """What the process does until nobody asks any more."""
        status = 1
        try:
            # A signal for the run is the run's business: it saves first, and this process ends after it.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                signal.signal(number, signal.SIG_IGN)
            order, known = np.empty(0, np.int32), -1
            while len(asked := os.read(request, REQUEST.size)) == REQUEST.size:
                epoch, first, last, slot = REQUEST.unpack(asked)
                if epoch != known:
                    order, known = batches.order(epoch), epoch
                made = batches.gather(order, range(first, last), self.rows[slot])
                self.power[slot, : len(made)] = [batch.power for batch in made]
                os.write(answer, b".")
            status = 0
        finally:
            os._exit(status)

    def batches(self, owner: Batches, epoch: int, ranges: Iterator[range]) -> Iterator[Batch]:
        """The batches of these ranges in turn; Gone where the process is."""
        waiting: deque[tuple[range, int]] = deque()
        number = 0
        for numbers in islice(ranges, AHEAD):
            waiting.append((numbers, self.ask(epoch, numbers, number)))
            number += 1
        try:
            while waiting:
                self.hear()
                ready, slot = waiting.popleft()
                for numbers in islice(ranges, 1):
                    waiting.append((numbers, self.ask(epoch, numbers, number)))
                    number += 1
                yield from owner.cut(self.rows[slot], self.power[slot], ready)
        except GeneratorExit:
            for _ in waiting if self.open else ():  # answers to what nobody wants any more
                self.hear()
            raise

    def hear(self) -> None:
        """Wait for the next block."""
        if not os.read(self.hearing, 1):
            raise Gone

    def ask(self, epoch: int, numbers: range, number: int) -> int:
        """Ask for a block; the slot it will be in."""
        slot = number % SLOTS
        try:
            os.write(self.asking, REQUEST.pack(epoch, numbers.start, numbers.stop, slot))
        except BrokenPipeError:
            raise Gone from None
        return slot

    def close(self) -> None:
        """End the process."""
        self.open = False
        os.close(self.asking)
        os.close(self.hearing)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def suits(batches: Batches, steps: int) -> bool:
    """Whether a process may gather: a fork must not share open files, and needs a core of its own."""
    return (
        sys.platform == "linux"
        and steps >= LEAST_STEPS
        and cores() > 1
        and batches.may_fork
        and batches.source.in_memory
    )


@contextlib.contextmanager
def gathering(batches: Batches, steps: int) -> Iterator[None]:
    """Inside, the batches come from a process where that suits."""
    if not suits(batches, steps):
        yield
        return
    batches.gatherer = Gatherer(batches)
    try:
        yield
    finally:
        gatherer, batches.gatherer = batches.gatherer, None
        if gatherer is not None:
            gatherer.close()
