"""Collective communication between the ranks of one run, and what the other ranks do when one dies.

Collectives of objects have a long timeout, because one rank may read its data more slowly than another. Sums, for which
all ranks have their rows, have a short one. A rank that ends writes its reason into the store first.
The others, whose collective then fails, can so tell an orderly end from a death. The lowest rank that is alive prints
the error line.
"""

import atexit
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from sigmapca_cli.system.errors import InputError, SigmapcaError, Signalled, Stopped
from sigmapca_cli.system.processes import WorkerInfo
from sigmapca_cli.system.signals import RESUMABLE

SETUP_TIMEOUT = timedelta(hours=6)  # the slowest rank has read its data by then
STEP_TIMEOUT = timedelta(
    seconds=float(os.environ.get("SIGMAPCA_RANK_TIMEOUT") or 300)
)  # a rank that is silent for longer counts as dead
ANSWER_SECONDS = 2.0  # a rank that is alive answers within so many seconds
Result = TypeVar("Result")


class Ranks:
    """The collectives of the processes that solve one run together (`row_shards.Sharing`)."""

    def __init__(self, here: WorkerInfo) -> None:
        self.rank, self.world = here.rank, here.world
        self.diagnosis: SigmapcaError | None = None
        self.dead: list[int] = []
        self.hint: Callable[[], str] = lambda: "the same command again starts the run"
        self.store = self.rendezvous(here)
        dist.init_process_group(
            "gloo", store=self.store, rank=here.rank, world_size=here.world, timeout=SETUP_TIMEOUT
        )
        self.step_group = dist.new_group(backend="gloo", timeout=STEP_TIMEOUT)
        self.names = [
            str(name) for name in self.all_gather(f"process {os.getpid()} on {socket.gethostname()}")
        ]

    def rendezvous(self, here: WorkerInfo) -> Any:
        """Return the key-value store that all ranks share: torchrun's own, or that of rank 0."""
        port = os.environ.get("MASTER_PORT") or str(
            20_000 + int(os.environ.get("SLURM_JOB_ID") or 0) % 20_000
        )
        at = f"tcp://{os.environ['MASTER_ADDR']}:{port}"
        try:
            if os.environ.get("TORCHELASTIC_USE_AGENT_STORE"):
                store, *_ = next(dist.rendezvous("env://"))
            else:
                store, *_ = next(dist.rendezvous(at, here.rank, here.world, timeout=STEP_TIMEOUT))
        except (RuntimeError, ValueError) as problem:
            reason = " ".join(str(problem).split())[:160]
            raise InputError(
                f"the {here.world} processes do not find each other at {at} ({reason})"
            ) from None
        # torchrun restarts all ranks with the same store: a prefix hides what was written before the restart.
        return dist.PrefixStore(f"sigmapca/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)

    # ---- sums of tensors ----

    def add_(self, values: np.ndarray, patient: bool) -> np.ndarray:
        """Sum a float64 vector over all ranks, in place, and return it. patient: another rank may still read rows."""
        if patient:
            self.all_gather(None)  # waits for the slowest reader; an all-reduce would count it as dead
        try:
            dist.all_reduce(torch.from_numpy(values), group=self.step_group)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return values

    # ---- objects ----

    def all_gather(self, word: Any) -> list[Any]:
        """Return the objects of all ranks, in the order of the ranks."""
        words: list[Any] = [None] * self.world
        try:
            dist.all_gather_object(words, word)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return words

    def broadcast_from_zero(self, word: Any) -> Any:
        """Return rank 0's object on every rank."""
        words = [word]
        try:
            dist.broadcast_object_list(words, src=0)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return words[0]

    def run_on_all(self, make: Callable[[], Result]) -> Result:
        """Call `make` on every rank and return its result. If one rank fails, raise on all of them.

        The rank that failed raises its own error, the others a RemoteError with the same message.
        """
        made, problem = None, None
        try:
            made = make()
        except (SigmapcaError, Signalled) as error:
            problem = error
        words = self.all_gather(None if problem is None else (str(problem), problem.exit_status))
        for rank, word in enumerate(words):
            if word is not None and rank != self.rank and problem is None:
                raise RemoteError(f"rank {rank}, {self.names[rank]}: {word[0]}", word[1])
        if problem is not None:
            raise problem
        return made  # type: ignore[return-value]

    # ---- the end of a rank ----

    @contextlib.contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Close the process group when the block ends; after an error tell the other ranks why.

        Only rank 0 lets its error reach the user. Every other rank exits with the status of its error.
        """
        try:
            yield
        except BaseException as problem:
            if isinstance(problem, SystemExit) and not problem.code:
                dist.destroy_process_group()
                raise
            self.announce_exit(str(problem), exit_status(problem))
            if self.rank:
                self.wait_for_zero()
                raise SystemExit(exit_status(problem)) from None
            raise
        dist.destroy_process_group()

    def announce_exit(self, text: str, status: int) -> None:
        """Write into the store that this rank ends, and why."""
        with contextlib.suppress(RuntimeError):
            self.store.set(f"left/{self.rank}", json.dumps([text, status]))
            dist.destroy_process_group()
        if self.rank == 0:
            atexit.register(self.announce_done)
            if "TORCHELASTIC_USE_AGENT_STORE" not in os.environ:
                time.sleep(ANSWER_SECONDS)  # rank 0 holds the store, and the other ranks still read it

    def announce_done(self) -> None:
        """Write into the store that rank 0 has printed its error."""
        with contextlib.suppress(RuntimeError):
            self.store.set("over", "")

    def wait_for_zero(self) -> None:
        """Wait until rank 0 has printed its error: torchrun kills every rank as soon as one has ended."""
        if 0 in self.dead:
            return
        with contextlib.suppress(RuntimeError):
            self.store.wait(["over"], timedelta(seconds=20))

    def broken(self, problem: RuntimeError) -> SigmapcaError:
        """Return the reason why a collective failed: another rank's error, or the death of a rank."""
        self.diagnosis = self.diagnosis or self.diagnose(problem)
        return self.diagnosis

    def diagnose(self, problem: RuntimeError) -> SigmapcaError:
        """Read in the store which ranks have ended and which are still alive."""
        try:
            self.store.set(f"here/{self.rank}", "")
            time.sleep(ANSWER_SECONDS)
            for rank in range(self.world):
                if self.store.check([f"left/{rank}"]):
                    text, status = json.loads(self.store.get(f"left/{rank}"))
                    return RemoteError(f"rank {rank}, {self.names[rank]}: {text}", status)
            self.dead = [rank for rank in range(self.world) if not self.store.check([f"here/{rank}"])]
        except RuntimeError:
            self.dead = [0]  # rank 0 held the store
        gone = self.dead
        speaker = min(rank for rank in range(self.world) if rank not in gone)
        names = ", ".join(f"rank {rank} ({self.names[rank]})" for rank in gone) or "rank unknown"
        reason = "" if gone else f" ({' '.join(str(problem).split())[:200]})"
        stopped = Stopped(f"a worker process died: {names}{reason}; {self.hint()}", RESUMABLE)
        if self.rank and self.rank == speaker:
            print(f"sigmapca: {stopped}", file=sys.stderr, flush=True)
        return stopped


class RemoteError(SigmapcaError):
    """An error of another rank, raised again on this one."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_status = status


def exit_status(problem: BaseException) -> int:
    """Return the exit status of a process that ends with this error."""
    if isinstance(problem, KeyboardInterrupt):
        return 130
    code = getattr(problem, "exit_status", getattr(problem, "code", 1))
    return code if isinstance(code, int) else 1
