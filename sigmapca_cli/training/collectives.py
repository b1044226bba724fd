"""The processes that share a run: what they tell each other, and what becomes of the rest when one is gone.

Until training begins words go over a group that may wait long (one process reads data more slowly than another);
then words and sums go over groups that do not. A process that leaves says so in the store first, so that those whose
sum then breaks off can tell an orderly end from a death, and one of them, the first that lives, says it in one line.
"""

import atexit
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from sigmapca_cli.errors import InputError, SigmapcaError, Stopped
from sigmapca_cli.processes import Place
from sigmapca_cli.signals import RESUMABLE

PATIENT = timedelta(hours=6)  # until the slowest has read its data
STEP = timedelta(
    seconds=float(os.environ.get("SIGMAPCA_RANK_TIMEOUT") or 300)
)  # until a silent one is given up
ANSWER = 2.0  # seconds in which those that live say so
Made = TypeVar("Made")


class Ranks:
    """Sums, means and words between the processes of a run. `weight` is this one's share of the present batch."""

    def __init__(self, here: Place, device: torch.device) -> None:
        self.rank, self.world = here.rank, here.world
        self.weight = 1.0
        self.asking = threading.Lock()
        self.found: SigmapcaError | None = None
        self.gone: list[int] = []
        self.hint: Callable[[], str] = lambda: "the same command again starts the run"
        self.store = self.meet(here)
        dist.init_process_group(
            "gloo", store=self.store, rank=here.rank, world_size=here.world, timeout=PATIENT
        )
        self.host = dist.new_group(backend="gloo", timeout=STEP)
        self.ahead = dist.new_group(backend="gloo", timeout=STEP)  # of the thread that gathers rows
        self.talk: Any = dist.group.WORLD
        # Two processes on one GPU have no NCCL between them: their sums go through the host.
        self.nccl = dist.new_group(backend="nccl", timeout=STEP) if own_gpu(device) else None
        self.who = [str(name) for name in self.gather(f"process {os.getpid()} on {socket.gethostname()}")]

    def meet(self, here: Place) -> dist.Store:
        """The store that all processes see: torchrun's own, or that of the first process."""
        port = os.environ.get("MASTER_PORT") or str(
            20_000 + int(os.environ.get("SLURM_JOB_ID") or 0) % 20_000
        )
        at = f"tcp://{os.environ['MASTER_ADDR']}:{port}"
        try:
            if os.environ.get("TORCHELASTIC_USE_AGENT_STORE"):
                store, *_ = next(dist.rendezvous("env://"))
            else:
                store, *_ = next(dist.rendezvous(at, here.rank, here.world, timeout=STEP))
        except (RuntimeError, ValueError) as problem:
            reason = " ".join(str(problem).split())[:160]
            raise InputError(
                f"the {here.world} processes do not find each other at {at} ({reason})"
            ) from None
        # torchrun starts all of them again in the same store: what was said before does not count.
        return dist.PrefixStore(f"sigmapca/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)

    # ---- sums ----

    def sum_(self, value: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if value.is_cuda and self.nccl is None:
            return value.copy_(self.sum_(value.cpu()))
        return self.sum_in(self.nccl if value.is_cuda else self.host, value)

    def sum_ahead(self, value: Tensor) -> Tensor:
        """As `sum_` of a tensor in memory, for a second thread: the sums of the two do not wait for each other."""
        return self.sum_in(self.ahead, value)

    def sum_in(self, group: Any, value: Tensor) -> Tensor:
        """The sum over the processes of a group."""
        try:
            dist.all_reduce(value, group=group)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return value

    def mean(self, v: Tensor) -> Tensor:
        """The mean over the whole batch from each share's own mean; gradients flow through it."""
        return WholeMean.apply(v, self)  # type: ignore[no-any-return]

    # ---- words ----

    def gather(self, word: Any) -> list[Any]:
        """What every process says, by rank."""
        words: list[Any] = [None] * self.world
        try:
            dist.all_gather_object(words, word, group=self.talk)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return words

    def first(self, word: Any = None) -> Any:
        """What the first process says."""
        words = [word]
        try:
            dist.broadcast_object_list(words, src=0, group=self.talk)
        except RuntimeError as problem:
            raise self.broken(problem) from None
        return words[0]

    def hurry(self) -> None:
        """From now on no process has a reason to be silent for longer than a step may take."""
        self.talk = self.host

    def together(self, make: Callable[[], Made]) -> Made:
        """Let every process make its own; where one of them cannot, none goes on, and the reason is told once."""
        made, problem = None, None
        try:
            made = make()
        except SigmapcaError as error:
            problem = error
        words = self.gather(None if problem is None else (str(problem), problem.exit_status))
        for rank, word in enumerate(words):
            if word is not None and rank != self.rank and problem is None:
                raise Told(f"rank {rank}, {self.who[rank]}: {word[0]}", word[1])
        if problem is not None:
            raise problem
        return made  # type: ignore[return-value]

    # ---- the end ----

    @contextlib.contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Leaves the group in good order whatever ends the block; only the first process lets its error be seen."""
        try:
            yield
        except BaseException as problem:
            if isinstance(problem, SystemExit) and not problem.code:
                dist.destroy_process_group()
                raise
            self.leave(str(problem), exit_status(problem))
            if self.rank:
                self.wait_for_first()
                raise SystemExit(exit_status(problem)) from None
            raise
        dist.destroy_process_group()

    def leave(self, text: str, status: int) -> None:
        """Say that this process goes, and why."""
        with contextlib.suppress(RuntimeError):
            self.store.set(f"left/{self.rank}", json.dumps([text, status]))
            dist.destroy_process_group()
        if self.rank == 0:
            atexit.register(self.over)
            if "TORCHELASTIC_USE_AGENT_STORE" not in os.environ:
                time.sleep(ANSWER)  # the store ends with this process, and the others still look into it

    def over(self) -> None:
        """The first process has said all it had to say."""
        with contextlib.suppress(RuntimeError):
            self.store.set("over", "")

    def wait_for_first(self) -> None:
        """Until the first process has said why all leave: torchrun ends every process when one has ended."""
        if 0 in self.gone:
            return
        with contextlib.suppress(RuntimeError):
            self.store.wait(["over"], timedelta(seconds=20))

    def broken(self, problem: RuntimeError) -> SigmapcaError:
        """What it means that a sum broke off: the word that another has left, or that one is gone without a word."""
        with self.asking:  # the sums of both threads break off
            self.found = self.found or self.look(problem)
            return self.found

    def look(self, problem: RuntimeError) -> SigmapcaError:
        """Ask the store who has left and who is still here."""
        try:
            self.store.set(f"here/{self.rank}", "")
            time.sleep(ANSWER)
            for rank in range(self.world):
                if self.store.check([f"left/{rank}"]):
                    text, status = json.loads(self.store.get(f"left/{rank}"))
                    return Told(f"rank {rank}, {self.who[rank]}: {text}", status)
            self.gone = [rank for rank in range(self.world) if not self.store.check([f"here/{rank}"])]
        except RuntimeError:
            self.gone = [0]  # the store was the first process's
        gone = self.gone
        speaker = min(rank for rank in range(self.world) if rank not in gone)
        names = ", ".join(f"rank {rank} ({self.who[rank]})" for rank in gone) or "nobody can tell which"
        reason = "" if gone else f" ({' '.join(str(problem).split())[:200]})"
        stopped = Stopped(f"a worker is gone: {names}{reason}; {self.hint()}", RESUMABLE)
        if self.rank and self.rank == speaker:
            print(f"sigmapca: {stopped}", file=sys.stderr, flush=True)
        return stopped


class Told(SigmapcaError):
    """What ended another process, heard here."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_status = status


class WholeMean(torch.autograd.Function):
    """m = Σ_r w_r m_r over the shares; of the loss Σ_r w_r L_r the gradient at every m_r is Σ_s w_s ∂L_s/∂m, times w_r.

    The factor w_r is left to the sum of the gradients.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.sum_(v * ranks.weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.ranks.sum_(gradients[0] * ctx.ranks.weight), None


def exit_status(problem: BaseException) -> int:
    """The status that a process ends with after this."""
    if isinstance(problem, KeyboardInterrupt):
        return 130
    code = getattr(problem, "exit_status", getattr(problem, "code", 1))
    return code if isinstance(code, int) else 1


def own_gpu(device: torch.device) -> bool:
    """Whether every process of this machine has a GPU of its own, and NCCL is there."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("SLURM_NTASKS_PER_NODE") or 1)
    return device.type == "cuda" and dist.is_nccl_available() and here <= torch.cuda.device_count()
