"""One run over several processes (`torchrun`, `srun`): each holds a share of every batch, the first one writes.

All draw the same order of an epoch; each takes its part of every batch of `batch_size` rows, so that together they see
the rows that one process would have seen. Means over the batch and the gradient are summed over the shares, after which
every process makes the same step. So the result is that of one process, up to the order of summation, and a checkpoint
of either can be taken up by the other.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from sigmapca_cli.errors import InputError, SigmapcaError, Stopped
from sigmapca_cli.job import Job
from sigmapca_cli.methods import method as methods
from sigmapca_cli.methods.host import covers
from sigmapca_cli.processes import Place, blas, pick_threads
from sigmapca_cli.runner import checkpoints, stochastic
from sigmapca_cli.runs import checkpoint as files
from sigmapca_cli.runs.find import shortened
from sigmapca_cli.runs.format import CHECKPOINT_FILE
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources import build as build_source
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.components import count_of
from sigmapca_cli.training import device as torch_device
from sigmapca_cli.training.collectives import Ranks
from sigmapca_cli.training.loop import Hooks, Trainer
from sigmapca_cli.training.sharded import Agreed, Shared, SharedBatches, SharedStep

log = logging.getLogger("sigmapca")


class SharedTrainer(Trainer):
    """A trainer that makes the same steps in every process. `whole` is the method for questions of one process."""

    ranks: Ranks
    whole: Any
    agreed: Agreed
    share: Shared
    batches: SharedBatches

    @classmethod
    def of(cls, trainer: Trainer, source: Source, ranks: Ranks, guard: Guard) -> "SharedTrainer":
        """The trainer of one process, shared."""
        made = cls(**{f.name: getattr(trainer, f.name) for f in fields(Trainer)})
        made.ranks, made.whole = ranks, trainer.method
        cfg, model = trainer.cfg, trainer.method.model
        by_batch, dtype = model.centring == "batch", trainer.state["W"].dtype
        made.batches = SharedBatches(trainer.batches.source, cfg.batch_size, cfg.seed, ranks, dtype, by_batch)
        made.batches.through = cfg.shuffle_buffer
        made.share = share = Shared(ranks, made.batches, guard)
        made.agreed = Agreed(guard, share, made)
        # Rows that come centred are not to be centred on the share again.
        made.method = replace(
            made.whole, share=share, model=replace(model, centring="data") if by_batch else model
        )
        return made

    def begin_epoch(self) -> None:
        """Processors of different make differ in last bits: at every epoch all go on from the first one's state."""
        super().begin_epoch()
        self.meet()

    def meet(self) -> None:
        """Take over the first process's step, state, slots and generator."""
        kept = (self.state, self.slots)
        mine = [{n: v.detach().cpu() for n, v in group.items()} for group in kept]
        word = (self.step, *mine, self.generator.get_state())
        self.step, state, slots, generator = self.ranks.first(word if self.ranks.rank == 0 else None)
        if self.ranks.rank:
            for group, values in zip(kept, (state, slots), strict=True):
                for name, value in values.items():
                    if name in group:
                        group[name].copy_(value)
                    else:
                        group[name] = value.to(self.state["W"].device)
            self.generator.set_state(generator)

    def run(self) -> None:
        """As one process; whether it is enough is for the first one to say."""
        asked = self.hooks.finished

        def finished(trainer: Trainer) -> bool:
            if not stochastic.to_be_asked(trainer):
                return False
            shared, trainer.method = trainer.method, self.whole
            try:
                return bool(self.ranks.first(self.ranks.rank == 0 and asked(trainer)))
            finally:
                trainer.method = shared

        self.hooks.finished = finished
        try:
            with blas(torch.get_num_threads()):
                super().run()
        finally:
            self.batches.close()

    def choose_step(self) -> None:
        """The step by hand with sums over the shares, where one process would take the step by hand."""
        if covers(self.cfg):
            self.fused = SharedStep(self.cfg, self.state, self.slots, self.share)
        else:
            super().choose_step()


def run(job: Job, here: Place) -> Path:
    """The run of a job by this process among others. Returns in the first one only; the others end here.

    Raises InputError for what one process solves at once, and for processes that were given different things;
    Stopped when a worker is gone.
    """
    method = checked(job, here)
    with Guard() as guard:
        guard.again_after = 3.0  # torchrun passes on to all the Ctrl-C that the terminal has sent to all
        device = own_device(job.cfg.device, here)
        ranks = Ranks(here, device)
        with ranks.until_the_end(), quiet(ranks):
            source = ranks.together(lambda: build_source(job.cfg.data))
            ranks.together(lambda: same(ranks, job, source))
            if ranks.rank:
                follow(job, method, source, ranks, guard)
            return lead(job, source, ranks, guard)


def checked(job: Job, here: Place) -> Any:
    """The method of a job that takes steps: what is solved at once gains nothing from more processes."""
    cfg = job.cfg
    method = methods.build(cfg)
    if method.kind == "direct" or cfg.solver.name != "stochastic":
        what = f"model={cfg.model.name}" if method.kind == "direct" else f"solver={cfg.solver.name}"
        raise InputError(
            f"{what} is solved in one process, not in {here.world}: start it without torchrun or srun"
        )
    if cfg.batch_size < here.world:
        raise InputError(f"batch_size={cfg.batch_size}: fewer rows than the {here.world} processes; raise it")
    return method


def own_device(name: str, here: Place) -> torch.device:
    """The device of this process: of several GPUs the one of its number on this machine."""
    device = torch_device.pick_device(name)
    if device.type == "cuda" and device.index is None:
        torch.cuda.set_device(here.local % torch.cuda.device_count())
    return device


@contextlib.contextmanager
def quiet(ranks: Ranks) -> Iterator[None]:
    """The first process speaks for all."""
    if ranks.rank == 0:
        yield
        return
    log.setLevel(logging.CRITICAL)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def same(ranks: Ranks, job: Job, source: Source) -> None:
    """Refuse processes that would train different runs."""
    words = ranks.gather((job.hash, source.hash))
    for what, index in (("another configuration", 0), ("other data", 1)):
        other = [rank for rank, word in enumerate(words) if word[index] != words[0][index]]
        if other:
            raise InputError(
                f"rank {other[0]}, {ranks.who[other[0]]}, has {what} than rank 0; "
                "start all of them with the same command and the same files"
            )


def lead(job: Job, source: Source, ranks: Ranks, guard: Guard) -> Path:
    """The first process: it has the folder, and trains, evaluates and writes."""
    from sigmapca_cli.runner.lifecycle import complete, opened

    with contextlib.ExitStack() as stack:
        begun = ranks.together(lambda: stack.enter_context(opened(job, source)))
        if isinstance(begun, Path):
            ranks.first(None)
            return begun
        ranks.hint = lambda: how_to_go_on(begun.folder)
        ranks.first(begun.folder)
        begun.writer.attrs["processes"] = ranks.world
        log.info("%d processes: %s", ranks.world, ", ".join(ranks.who))
        began = time.monotonic()
        trainer = ranks.together(lambda: prepared(job, begun.method, source, ranks, guard))
        if begun.saved is not None:
            checkpoints.restore(trainer, begun.saved)
        trained = ranks.first(begun.saved is not None and begun.saved.trained)
        if not trained:
            trainer.meet()
            ranks.hurry()
            saver = checkpoints.Saver(job.cfg, begun.folder, job.hash, source.hash)
            stochastic.train(trainer, source, begun.writer, saver, trainer.agreed)
        trainer.method = trainer.whole
        solved = stochastic.conclude(trainer, source)
        log.info("solved in %.2f s", time.monotonic() - began)
        complete(begun, *solved)
        return begun.folder


def follow(job: Job, method: Any, source: Source, ranks: Ranks, guard: Guard) -> NoReturn:
    """Every other process: it takes its part in the steps, and writes nothing."""
    ranks.together(lambda: None)
    folder = ranks.first()
    if folder is not None:
        ranks.hint = lambda: how_to_go_on(folder)
        cfg = job.cfg
        cfg.k = count_of(cfg.k, source.principal_axes()[0], source.n)
        work = cfg.batch_size * source.p * cfg.k // ranks.world
        torch_device.set_threads(pick_threads(cfg.threads, work))
        torch_device.set_precision(cfg.precision)
        trainer = ranks.together(lambda: prepared(job, method, source, ranks, guard))
        if not ranks.first():
            trainer.meet()
            ranks.hurry()
            train(trainer, guard)
    raise SystemExit(0)


def train(trainer: "SharedTrainer", guard: Guard) -> None:
    """The loop without what hangs on it."""

    def between(_: Trainer) -> None:
        if trainer.agreed.received is not None:
            raise Stopped(f"{trainer.agreed.name}", trainer.agreed.exit_status)

    trainer.hooks = Hooks(between=between)
    with guard.noting():
        trainer.run()
        between(trainer)


def prepared(job: Job, method: Any, source: Source, ranks: Ranks, guard: Guard) -> "SharedTrainer":
    """A shared trainer at its first step."""
    device = torch_device.pick_device(job.cfg.device)
    return SharedTrainer.of(stochastic.make_trainer(job.cfg, method, source, device), source, ranks, guard)


def how_to_go_on(folder: Path) -> str:
    """Where the run stands on disk, and what to do."""
    try:
        step = files.load(folder / CHECKPOINT_FILE)[1]["step"]
    except (OSError, SigmapcaError):
        return f"no checkpoint yet; sigmapca train --resume {shortened(folder)} begins again"
    return f"the checkpoint of step {step} stays; go on with sigmapca train --resume {shortened(folder)}"
