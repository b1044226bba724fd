"""R runs that differ only in a few numbers (a, the learning rate …), trained side by side as one batched program.

Each run keeps its own folder, log, checkpoint and result; what they share is the batches and the matrix products.
One that fails or diverges leaves, and the others go on: the columns of a product do not touch each other.
"""

import contextlib
import copy
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.config import VOLATILE
from sigmapca_cli.errors import SigmapcaError, Stopped
from sigmapca_cli.job import Job
from sigmapca_cli.methods.host import covers
from sigmapca_cli.processes import blas, mapped
from sigmapca_cli.runner import checkpoints, stochastic
from sigmapca_cli.runner.lifecycle import Work, complete, opened, speaking
from sigmapca_cli.runner.progress import progress, say
from sigmapca_cli.runs.identity import config_hash
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources.components import DEFAULT
from sigmapca_cli.training.arrays import as_numpy, detached
from sigmapca_cli.training.length import announce
from sigmapca_cli.training.loop import Trainer
from sigmapca_cli.training.stacked_step import side_by_side

log = logging.getLogger("sigmapca")

# What may differ between the members of a group: where and how a run is computed, numbers, and the schedule.
APART = tuple(key for key in VOLATILE if key not in ("threads", "device", "recipe"))
NUMBERS = ("a", "nonlinearity.a", "lr")
OF_THE_FUSED = ("sigma.momentum", "sigma.epsilon", "optimizer.momentum")
OF_THE_COMPOSED = ("model.alpha", "model.beta", "ordering.weight", "ordering.rho")
WIDEST = 512  # columns of one product: beyond this the buffers leave the cache


def group_key(job: Job, method: Any) -> str | None:
    """Jobs with equal keys can be trained side by side; None for a job that has to run alone.

    They share the batches, so that the seed is part of the key. A weight may differ where both have one: a
    regulariser that is there or not is another equation, and so is a number in the place of a word (a=auto).
    """
    cfg = job.cfg
    if method.kind != "trained" or cfg.stop != "never":
        return None
    fused = covers(cfg)
    plain = copy.deepcopy({**job.plain, "log": cfg.log_every})
    for key in (*NUMBERS, *(OF_THE_FUSED if fused else OF_THE_COMPOSED)):
        blur(plain, key)
    if not fused:
        plain["regularisers"] = sorted(method.terms)
    return config_hash(plain, (*APART, "optimizer.schedule"))


def blur(plain: Any, key: str) -> None:
    """Replace the number at a dotted key, so that any other number there is the same; words are left."""
    *groups, name = key.split(".")
    for group in groups:
        plain = plain[group]
    if isinstance(plain[name], int | float):
        plain[name] = "number"


def portions(members: Sequence[Any], k: Any) -> list[Sequence[Any]]:
    """A group of runs of k components in parts that are worth one program each."""
    each = max(1, WIDEST // (k if isinstance(k, int) else DEFAULT))  # other words for k need the data
    return [members[i : i + each] for i in range(0, len(members), each)]


class Member:
    """One run of a group: its contexts, which see its own failure and no other's."""

    def __init__(self, job: Job) -> None:
        self.job, self.stack = job, contextlib.ExitStack()
        self.problem: BaseException | None = None
        self.begun: Work | None = None
        self.trainer: Trainer | None = None
        self.folder: Path | None = None
        self.done = False  # trained to its end, or until it had converged

    @contextlib.contextmanager
    def own(self) -> Any:
        """What happens inside is this member's: its log hears it, and its failure ends only it."""
        token = speaking.set(self.folder)
        try:
            yield
        except SigmapcaError as problem:
            self.fail(problem)
        finally:
            speaking.reset(token)

    def fail(self, problem: BaseException) -> None:
        """Leave the group: the run is marked, its lock released."""
        self.problem = problem
        stack, self.stack = self.stack, contextlib.ExitStack()
        with contextlib.suppress(type(problem)), stack:
            raise problem

    def close(self) -> None:
        """Release what is still open."""
        self.stack.close()

    @property
    def active(self) -> bool:
        """Still training."""
        return self.problem is None and self.trainer is not None


def train_together(jobs: Sequence[Job], source: Any, guard: Guard) -> list[Member]:
    """Train the jobs of one group side by side on their common data; each member says how it ended."""
    members = [Member(job) for job in jobs]
    shown = None
    with contextlib.ExitStack() as all_of_them:
        for member in members:
            all_of_them.callback(member.close)
            with member.own():
                begin(member, source)
        while group := next_group(members):
            assert group[0].trainer is not None
            if shown is None:
                announce(group[0].trainer)
                shown = progress(group[0].trainer.total, group[0].trainer.cfg.log_format)
            shown.extend(group[0].trainer.total)
            if len(group) > 1:
                say(f"{len(group)} runs side by side")
            with guard.noting(), blas(threads_of(group)), np.errstate(all="ignore"):
                advance(group, guard, shown)
            list(mapped(look, group))
        if shown is not None:
            shown.close()
        ready = [m for m in members if m.active]
        list(mapped(lambda member: finish(member, source, len(members)), ready))
    return members


def next_group(members: Sequence[Member]) -> list[Member]:
    """The runs that are not done and stand at the same step, the least; a stage of them is trained at once."""
    waiting = [m for m in members if m.active and not m.done and m.trainer is not None]
    least = min((m.trainer.step for m in waiting if m.trainer is not None), default=0)
    return [m for m in waiting if m.trainer is not None and m.trainer.step == least]


def look(member: Member) -> None:
    """At the end of a stage: is it enough for this run?"""
    trainer = member.trainer
    if not member.active or trainer is None:
        return
    with member.own():
        # Its arrays are views of those of the group, which goes on.
        trainer.state = {name: detached(value) for name, value in trainer.state.items()}
        trainer.slots = {name: detached(value) for name, value in trainer.slots.items()}
        member.done = trainer.step >= trainer.ends[-1] or trainer.hooks.finished(trainer)


def finish(member: Member, source: Any, count: int) -> None:
    """Evaluate what a member has come to, and write it."""
    with member.own():
        assert member.begun is not None and member.trainer is not None
        solved = stochastic.conclude(member.trainer, source)
        complete(member.begun, *solved, attrs={"side_by_side": count})


def begin(member: Member, source: Any) -> None:
    """Open the run and put its trainer where its checkpoint left off."""
    begun = member.stack.enter_context(opened(member.job, source))
    if isinstance(begun, Path):
        member.folder = begun
        return
    member.folder, member.begun = begun.folder, begun
    cfg = member.job.cfg
    trainer = stochastic.make_trainer(cfg, begun.method, source, begun.device)
    if begun.saved is not None:
        checkpoints.restore(trainer, begun.saved)
        member.done = begun.saved.trained
    trainer.hooks = stochastic.hooks(trainer, source, begun.writer, lambda step, values: None)
    member.trainer = trainer


def threads_of(group: list[Member]) -> int:
    """The threads of the first run of a group: they are alike in all that decides it."""
    return next(m.begun.threads for m in group if m.begun is not None)


def advance(group: list[Member], guard: Guard, shown: Any) -> None:
    """The steps of one stage, for members that stand at the same step."""
    trainers = [m.trainer for m in group if m.trainer is not None]
    first = trainers[0]
    first.batches.centre = covers(first.cfg)
    with side_by_side(trainers) as step:
        all_steps(step, group, trainers, guard, shown)


def all_steps(step: Any, group: list[Member], trainers: list[Trainer], guard: Guard, shown: Any) -> None:
    """Epoch after epoch, with everything that hangs on each run's loop."""
    first = trainers[0]
    savers = [
        checkpoints.Saver(m.job.cfg, m.begun.folder, m.job.hash, m.begun.source.hash)
        for m in group
        if m.begun
    ]
    window: list[Any] = []
    end = first.total
    while first.step < end and any(m.active for m in group):
        epoch, start = first.position
        if start == 0:
            for trainer in trainers:
                trainer.begin_epoch()
        for batch in first.batches.epoch(epoch, start):
            factors = [trainer.factor() for trainer in trainers]
            window.append(step.losses(batch, first.step + 1, factors))
            for trainer in trainers:
                trainer.step += 1
            ended = first.has_ended()
            if ended or first.step % first.cfg.log_every == 0:
                hand_out(window, trainers)
                log_step(group, trainers, ended, shown)
            if first.step == end:
                # Nothing is saved here: whether a run goes on from the end of a stage is decided first.
                break
            if guard.received is not None:
                hand_out(window, trainers)
                stop_all(group, savers, guard)
            if savers[0].due(first.step):
                hand_out(window, trainers)
                for member, saver in zip(group, savers, strict=True):
                    if member.active and member.begun is not None and member.trainer is not None:
                        stochastic.save(member.trainer, member.begun.writer, saver)


def hand_out(window: list[Any], trainers: list[Trainer]) -> None:
    """Each run gets its losses of the steps in the window, which is empty afterwards."""
    if not window:
        return
    rows = [as_numpy(w) for w in window]
    each = np.asarray(rows, np.float64).reshape(len(rows), -1)
    for trainer, losses in zip(trainers, each.T, strict=True):
        trainer.losses.extend(losses)
    window.clear()


def log_step(group: list[Member], trainers: list[Trainer], ended: bool, shown: Any) -> None:
    """At the end of a window each run logs and checks itself."""
    first = trainers[0]
    values = []
    for member, trainer in zip(group, trainers, strict=True):
        if not member.active:
            trainer.losses.clear()
            continue
        values.append(float(trainer.losses[-1]) * trainer.unit**2)
        with member.own():
            trainer.flush(ended)
    shown.update(first.step, {"loss": float(np.mean(values))} if values else {})


def stop_all(group: list[Member], savers: list[checkpoints.Saver], guard: Guard) -> None:
    """A signal: every run saves and is marked interrupted; then whoever sent the signal is obeyed."""
    stopped: Stopped | None = None
    for member, saver in zip(group, savers, strict=True):
        if not member.active or member.begun is None or member.trainer is None:
            continue
        try:
            stochastic.stop(member.trainer, member.begun.writer, saver, guard)
        except Stopped as problem:
            member.fail(problem)
            stopped = problem
    if stopped is not None:
        raise stopped
