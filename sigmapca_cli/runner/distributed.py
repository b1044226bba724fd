"""One run over several processes (`torchrun`, `srun`): each rank holds a shard of every batch, rank 0 writes.

All ranks draw the same order of an epoch; each takes its shard of every batch of `batch_size` rows, so that together
they see the rows that one process would have seen. Means over the batch and the gradient are all-reduced, after which
every rank makes the same step. So the result is that of one process, up to the order of summation, and a checkpoint
of either can be resumed by the other.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import torch

from sigmapca_cli.errors import InputError, SigmapcaError, Stopped
from sigmapca_cli.job import Job
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.method import Method
from sigmapca_cli.processes import WorkerInfo, blas, pick_threads
from sigmapca_cli.runner.lifecycle import finish_run, open_run
from sigmapca_cli.runner.open_run import OpenRun
from sigmapca_cli.runner.stochastic import (
    TrainedRun,
    Training,
    build_solution,
    is_asked,
    make_trainer,
    unit_of,
)
from sigmapca_cli.runs import checkpoint as files
from sigmapca_cli.runs.find import shortened
from sigmapca_cli.runs.format import CHECKPOINT_FILE
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources import build as build_source
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.components import count_for
from sigmapca_cli.training import device as torch_device
from sigmapca_cli.training import loop
from sigmapca_cli.training.collectives import Ranks
from sigmapca_cli.training.protocols import State, Step
from sigmapca_cli.training.sharded import AgreedGuard, AllReduce, ShardedBatches
from sigmapca_cli.training.stacked_step import stacked_step
from sigmapca_cli.training.trainer import Memory, Trainer

log = logging.getLogger("sigmapca")


class ShardedTraining:
    """A trainer on shards of every batch, and what keeps it in step with those of the other ranks."""

    def __init__(self, job: Job, method: Method, source: Source, ranks: Ranks, guard: Guard) -> None:
        cfg = job.cfg
        self.ranks, by_batch = ranks, method.model.centring == "batch"
        divided = source.divided(unit_of(cfg, source))
        self.batches = ShardedBatches(
            divided, cfg.batch_size, cfg.seed, ranks, cfg.dtype, by_batch, through=cfg.shuffle_buffer
        )
        self.trainer = make_trainer(cfg, method, source, torch_device.pick_device(cfg.device), self.batches)
        self.reducer = AllReduce(ranks, self.batches, guard)
        self.guard = AgreedGuard(guard, self.reducer, self.trainer)
        # Rows that are centred on the whole batch must not be centred on the shard again.
        model = replace(method.model, centring="data") if by_batch else method.model
        self.method = replace(method, share=self.reducer, model=model)

    def step_of(self, runs: Sequence[Trainer]) -> AbstractContextManager[Step]:
        """Make the step on shards."""
        return stacked_step(runs, method=self.method, reducer=self.reducer)

    def epoch(self, trainer: Trainer) -> None:
        """Copy rank 0's state. Different CPUs round differently; without this the ranks could drift apart."""
        self.copy_from_zero()

    def copy_from_zero(self) -> None:
        """Copy rank 0's step, state, optimizer state, memory and generator to every rank."""
        trainer = self.trainer
        own = None
        if self.ranks.rank == 0:
            groups = (trainer.state, trainer.opt_state, trainer.memory.named())
            arrays = [{n: v.detach().cpu() for n, v in group.items()} for group in groups]
            own = (trainer.step, *arrays, trainer.generator.get_state())
        step, state, opt_state, memory, generator = self.ranks.broadcast_from_zero(own)
        if self.ranks.rank == 0:
            return
        trainer.step = step
        for group, values in ((trainer.state, state), (trainer.opt_state, opt_state)):
            copy_into(group, values, trainer.state["W"].device)
        kept = {name: value.to(trainer.state["W"].device) for name, value in memory.items()}
        trainer.memory = Memory.from_named(kept)
        trainer.generator.set_state(generator)

    def ask_zero(self) -> None:
        """Let rank 0 decide for all ranks whether the run is done: it alone measures convergence."""
        own = self.trainer.hooks.finished

        def finished(trainer: Trainer) -> bool:
            if not is_asked(trainer):
                return False
            return bool(self.ranks.broadcast_from_zero(self.ranks.rank == 0 and own(trainer)))

        self.trainer.hooks.finished = finished

    @contextlib.contextmanager
    def in_step(self) -> Iterator[None]:
        """Train inside this block: rank 0's state on every rank, and short timeouts."""
        self.ask_zero()
        self.copy_from_zero()
        self.ranks.use_step_timeout()
        try:
            with blas(torch.get_num_threads()):
                yield
        finally:
            self.batches.close()


def copy_into(group: State, values: State, device: torch.device) -> None:
    """Copy values into arrays of the same names, in place, since a step holds views of them; add the others."""
    for name, value in values.items():
        if name in group:
            group[name].copy_(value)
        else:
            group[name] = value.to(device)


def run(job: Job, here: WorkerInfo) -> Path:
    """Train the run of a job as one of several ranks. Return on rank 0 only; the other ranks exit here.

    Raise InputError for ranks with different configurations or data; Stopped when a worker process has died.
    """
    method = checked_method(job, here)
    with Guard() as guard:
        guard.again_after = 3.0  # the terminal sends Ctrl-C to all ranks, and torchrun sends it to them again
        device = own_device(job.cfg.device, here)
        ranks = Ranks(here, device)
        with ranks.until_the_end(), silence_others(ranks):
            source = ranks.run_on_all(lambda: build_source(job.cfg.data))
            ranks.run_on_all(lambda: check_same(ranks, job, source))
            if ranks.rank:
                follow(job, method, source, ranks, guard)
            return lead(job, source, ranks, guard)


def checked_method(job: Job, here: WorkerInfo) -> Method:
    """Return the method of a job. Raise InputError if a batch has fewer rows than there are ranks."""
    cfg = job.cfg
    method = methods.build(cfg)
    if cfg.batch_size < here.world:
        raise InputError(f"batch_size={cfg.batch_size}: fewer rows than the {here.world} processes; raise it")
    return method


def own_device(name: str, here: WorkerInfo) -> torch.device:
    """Return the device of this rank: of several GPUs the one of its number on this machine."""
    device = torch_device.pick_device(name)
    if device.type == "cuda" and device.index is None:
        torch.cuda.set_device(here.local % torch.cuda.device_count())
    return device


@contextlib.contextmanager
def silence_others(ranks: Ranks) -> Iterator[None]:
    """Let only rank 0 log and print."""
    if ranks.rank == 0:
        yield
        return
    log.setLevel(logging.CRITICAL)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def check_same(ranks: Ranks, job: Job, source: Source) -> None:
    """Raise InputError for ranks that would train different runs."""
    identities = ranks.all_gather((job.hash, source.hash))
    for what, index in (("another configuration", 0), ("other data", 1)):
        other = [rank for rank, identity in enumerate(identities) if identity[index] != identities[0][index]]
        if other:
            raise InputError(
                f"rank {other[0]}, {ranks.names[other[0]]}, has {what} than rank 0; "
                "start all of them with the same command and the same files"
            )


@contextlib.contextmanager
def opened_for_all(
    job: Job, source: Source, ranks: Ranks, hint: Callable[[Path], str]
) -> Iterator[OpenRun | Path]:
    """Open the run on rank 0, and tell the others its folder; the folder itself if the run is finished already.

    hint: what to do again if a rank is lost.
    """
    with contextlib.ExitStack() as stack:
        opened = ranks.run_on_all(lambda: stack.enter_context(open_run(job, source)))
        if isinstance(opened, Path):
            ranks.broadcast_from_zero(None)
        else:
            folder = opened.folder
            ranks.hint = lambda: hint(folder)
            ranks.broadcast_from_zero(folder)
            opened.writer.attrs["processes"] = ranks.world
            log.info("%d processes: %s", ranks.world, ", ".join(ranks.names))
        yield opened


def lead(job: Job, source: Source, ranks: Ranks, guard: Guard) -> Path:
    """Rank 0: open the run, train, evaluate and write."""
    with opened_for_all(job, source, ranks, how_to_resume) as opened:
        if isinstance(opened, Path):
            return opened
        start = time.monotonic()
        method = methods.build(job.cfg)
        sharded = ranks.run_on_all(lambda: ShardedTraining(job, method, source, ranks, guard))
        run = TrainedRun.begin(opened, sharded.trainer)
        if not ranks.broadcast_from_zero(sharded.trainer.done):
            with sharded.in_step():
                Training([run], sharded.guard, epoch=sharded.epoch, step_of=sharded.step_of).train()
        solution, facts = build_solution(run.trainer, source)
        log.info("solved in %.2f s", time.monotonic() - start)
        finish_run(opened, solution, facts)
        return opened.folder


def follow(job: Job, method: Method, source: Source, ranks: Ranks, guard: Guard) -> NoReturn:
    """Every other rank: take part in the steps, and write nothing."""
    ranks.run_on_all(lambda: None)  # rank 0 opens the run
    folder = ranks.broadcast_from_zero()
    if folder is not None:
        ranks.hint = lambda: how_to_resume(folder)
        cfg = job.cfg
        cfg.k = count_for(source, cfg.k)
        work = cfg.batch_size * source.p * cfg.k // ranks.world
        torch_device.set_threads(pick_threads(cfg.threads, work))
        torch_device.set_precision(cfg.precision)
        sharded = ranks.run_on_all(lambda: ShardedTraining(job, method, source, ranks, guard))
        if not ranks.broadcast_from_zero():
            follow_steps(sharded)
    raise SystemExit(0)


def follow_steps(sharded: ShardedTraining) -> None:
    """Make the steps that rank 0 makes. Raise Stopped when all ranks have agreed on a signal."""
    guard = sharded.guard

    def stop() -> None:
        raise Stopped(guard.name, guard.exit_status)

    hooks = loop.LoopHooks(epoch=sharded.epoch, pauses=lambda step: guard.poll() is not None, pause=stop)
    with sharded.in_step(), guard.deferring():
        loop.train([sharded.trainer], hooks, sharded.step_of)
        if guard.poll() is not None:
            stop()


def how_to_resume(folder: Path) -> str:
    """Return what is saved of the run, and the command that resumes it."""
    try:
        step = files.load(folder / CHECKPOINT_FILE)[1]["step"]
    except (OSError, SigmapcaError):
        return f"no checkpoint yet; sigmapca train --resume {shortened(folder)} begins again"
    return f"the checkpoint of step {step} stays; go on with sigmapca train --resume {shortened(folder)}"
