"""Batches gathered by a forked process, which writes them into shared memory.

A thread that gathers takes the interpreter's lock from the thread that trains at every call; a process does not. The
forked process has the data already, and ends when its request pipe is closed, however the run ends.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import signal
import struct
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NoReturn

import numpy as np

from sigmapca_cli.system.processes import cores
from sigmapca_cli.training.batches import Batch, Batches, StackedBatches

log = logging.getLogger("sigmapca")

RING_BLOCKS = 5
AHEAD = 3  # blocks requested before they are needed; one more is in use
REQUEST = struct.Struct("qqqq")  # epoch, first batch, batch after the last, block of the ring
LEAST_STEPS = 300  # fewer steps are not worth the cost of a fork


class WorkerDied(Exception):
    """The forked process has ended: killed, or out of memory."""


class ForkedPrefetcher:
    """The forked process, the shared memory, and the two pipes between."""

    def __init__(self, batches: Batches) -> None:
        rows, p = batches.block * batches.size, batches.source.p
        size = RING_BLOCKS * (rows * p + batches.block) * 4
        self.memory = mmap.mmap(-1, size)
        values = np.frombuffer(self.memory, np.float32)
        self.rows = values[: RING_BLOCKS * rows * p].reshape(RING_BLOCKS, rows, p)
        self.power = values[RING_BLOCKS * rows * p :].reshape(RING_BLOCKS, batches.block)
        self.open = True
        requests, self.request_end = os.pipe()
        self.answer_end, answers = os.pipe()
        with warnings.catch_warnings():
            # Other threads exist; the child runs none of their code.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self.request_end)
            os.close(self.answer_end)
            self.serve(batches, requests, answers)
        os.close(requests)
        os.close(answers)

    def serve(self, batches: Batches, requests: int, answers: int) -> NoReturn:
        """Serve requests until the request pipe is closed; the loop of the forked process."""
        status = 1
        try:
            # The run handles its signals: it saves first, and this process ends after it.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                signal.signal(number, signal.SIG_IGN)
            order = np.empty(0, np.int32)
            order_of = -1
            while len(request := os.read(requests, REQUEST.size)) == REQUEST.size:
                epoch, first, last, block = REQUEST.unpack(request)
                if epoch != order_of:
                    order, order_of = batches.order(epoch), epoch
                gathered = batches.gather(order, range(first, last), self.rows[block])
                self.power[block, : len(gathered)] = [batch.power for batch in gathered]
                os.write(answers, b".")
            status = 0
        finally:
            os._exit(status)

    def batches(self, owner: Batches, epoch: int, ranges: Iterator[range]) -> Iterator[Batch]:
        """Yield the batches of these ranges in turn. Raise WorkerDied if the process has ended."""
        waiting: deque[tuple[range, int]] = deque()
        number = 0
        for numbers in islice(ranges, AHEAD):
            waiting.append((numbers, self.request(epoch, numbers, number)))
            number += 1
        try:
            while waiting:
                self.wait()
                ready, block = waiting.popleft()
                for numbers in islice(ranges, 1):
                    waiting.append((numbers, self.request(epoch, numbers, number)))
                    number += 1
                yield from owner.cut(self.rows[block], self.power[block], ready)
        except GeneratorExit:
            for _ in waiting if self.open else ():  # answers that are no longer needed
                self.wait()
            raise

    def wait(self) -> None:
        """Wait until the next block is ready."""
        if not os.read(self.answer_end, 1):
            raise WorkerDied

    def request(self, epoch: int, numbers: range, number: int) -> int:
        """Request these batches and return the block of the ring that they will be in."""
        block = number % RING_BLOCKS
        try:
            os.write(self.request_end, REQUEST.pack(epoch, numbers.start, numbers.stop, block))
        except BrokenPipeError:
            raise WorkerDied from None
        return block

    def close(self) -> None:
        """End the process."""
        if not self.open:
            return
        self.open = False
        os.close(self.request_end)
        os.close(self.answer_end)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class ForkedBatches:
    """The batches of `Batches.epoch` from a forked process; from this process once that one has died."""

    def __init__(self, batches: Batches) -> None:
        self.own, self.prefetcher = batches, ForkedPrefetcher(batches)
        self.died = False

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of one epoch; see `Batches.epoch`."""
        if not self.died:
            try:
                for batch in self.prefetcher.batches(self.own, epoch, self.own.ranges(first)):
                    yield batch
                    first += 1
                return
            except WorkerDied:
                self.died = True
                self.prefetcher.close()
                log.warning(
                    "the process that gathered batches has ended (out of memory?); going on without it"
                )
        yield from self.own.epoch(epoch, first)


def is_worth_a_fork(batches: Batches, steps: int) -> bool:
    """Return whether a forked process may gather: it must not share open files, and needs a core of its own."""
    return sys.platform == "linux" and steps >= LEAST_STEPS and cores() > 1 and batches.source.in_memory


@contextlib.contextmanager
def open_batches(runs: Sequence[Batches], steps: int) -> Iterator[Batches | StackedBatches | ForkedBatches]:
    """Open the batches of so many steps: common ones if the runs share their seed, else rows stacked by run.

    Common batches are gathered by a forked process where that is worth it.
    """
    if len({batches.seed for batches in runs}) > 1:
        yield StackedBatches(runs)
        return
    if not is_worth_a_fork(runs[0], steps):
        yield runs[0]
        return
    forked = ForkedBatches(runs[0])
    try:
        yield forked
    finally:
        forked.prefetcher.close()
