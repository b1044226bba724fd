"""Runs that differ only in a few numbers (a, the learning rate …), trained as one group of stacked runs.

Each run keeps its own folder, log, checkpoint and result; the group shares the batches and the matrix products.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.job import Job
from sigmapca_cli.data.n_components import DEFAULT
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.numpy_main import NumpyMain
from sigmapca_cli.runner.lifecycle import finish_run, opened_run
from sigmapca_cli.runner.open_run import active_run
from sigmapca_cli.runner.stochastic import TrainedRun, Training, build_solution
from sigmapca_cli.settings.identity import PER_RUN
from sigmapca_cli.storage.identity import config_hash
from sigmapca_cli.system.errors import SigmapcaError
from sigmapca_cli.system.processes import blas, mapped
from sigmapca_cli.system.signals import Guard
from sigmapca_cli.training.protocols import TrainedMethod

NUMBERS_OF_ALL = ("a", "nonlinearity.a", "lr")
OF_THE_FUSED = ("sigma.momentum", "sigma.epsilon", "optimizer.momentum")
OF_THE_COMPOSED = ("model.alpha", "model.beta", "model.beta_0", "ordering.weight", "ordering.rho")
MAY_DIFFER = (*NUMBERS_OF_ALL, *OF_THE_FUSED, *OF_THE_COMPOSED, *PER_RUN, "optimizer.schedule")
"""Keys in which runs of one group may differ, if their method allows it."""
WIDEST = 512  # columns of one product: beyond this the buffers leave the cache


def group_key(job: Job, method: TrainedMethod | None, across_seeds: bool = False) -> str | None:
    """Return a key: jobs with equal keys can be trained in one group. None for a job that has to run alone.

    A group shares the batches, so that the seed is part of the key. With `across_seeds` each run of a method that is
    trained by autograd has batches of its own instead, if its steps draw nothing at random. The weight of a regulariser
    may differ, but not whether there is one, which is another equation; nor may a number stand in the place of a word
    (a=auto).
    """
    cfg = job.cfg
    if method is None:
        return None
    fused = isinstance(method, NumpyMain)
    plain = copy.deepcopy({**job.plain, "log": cfg.log_every})
    for key in (*NUMBERS_OF_ALL, *(OF_THE_FUSED if fused else OF_THE_COMPOSED)):
        blur(plain, key)
    if not fused:
        composed: Any = method
        if across_seeds and not composed.draws:
            blur(plain, "seed")
        plain["regularisers"] = sorted(composed.terms)
    return config_hash(plain, (*PER_RUN, "optimizer.schedule"))


def blur(plain: Any, key: str) -> None:
    """Replace the number at a dotted key by a word, so that every number gives the same key; words stay."""
    *groups, name = key.split(".")
    for group in groups:
        plain = plain[group]
    if isinstance(plain[name], int | float):
        plain[name] = "number"


def most_of(k: Any) -> int:
    """Return how many runs of k components are worth one program."""
    return max(1, WIDEST // (k if isinstance(k, int) else DEFAULT))  # other words for k need the data


def chunks_of(members: Sequence[Any], k: Any) -> list[Sequence[Any]]:
    """Cut a group of runs of k components into chunks that are worth one program each."""
    each = most_of(k)
    return [members[i : i + each] for i in range(0, len(members), each)]


class Member:
    """One run of a group. Its errors remove it from the group and leave the others alone.

    `folder`: the run's folder, once it is known; `problem`: the error that ended the run, or None.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.stack = job, contextlib.ExitStack()
        self.problem: BaseException | None = None
        self.run: TrainedRun | None = None
        self.folder: Path | None = None

    @contextlib.contextmanager
    def contained(self) -> Iterator[None]:
        """Run the block for this member: log records go to its train.log, and an error removes only this member."""
        token = active_run.set(self.folder)
        try:
            yield
        except SigmapcaError as problem:
            self.fail(problem)
        finally:
            active_run.reset(token)

    def fail(self, problem: BaseException) -> None:
        """Close the run with this error: it is marked failed or interrupted, and its lock is released."""
        self.problem = problem
        if self.run is not None:
            self.run.trainer.failed = True
        stack, self.stack = self.stack, contextlib.ExitStack()
        with contextlib.suppress(type(problem)), stack:
            raise problem

    def close(self) -> None:
        """Release what is still open."""
        self.stack.close()

    def open(self, source: Source) -> None:
        """Open the run and put its trainer where its checkpoint left off."""
        opened = self.stack.enter_context(opened_run(self.job, source))
        if isinstance(opened, Path):
            self.folder = opened
            return
        self.folder = opened.folder
        self.run = TrainedRun.begin(opened)
        self.run.trainer.hooks.contained = self.contained

    def finish(self, source: Source, count: int) -> None:
        """Evaluate the run's solution and write it; `count` runs were in the group."""
        if self.run is None or self.run.trainer.failed:
            return
        with self.contained():
            solution, facts = build_solution(self.run.trainer, source)
            finish_run(self.run.opened, solution, facts, attrs={"side_by_side": count})


def train_together(jobs: Sequence[Job], source: Source, guard: Guard) -> list[Member]:
    """Train the jobs of one group on their common data. Return a member for each, which says how its run ended.

    Raise Stopped after a signal: every run is then saved and marked interrupted.
    """
    members = [Member(job) for job in jobs]
    with contextlib.ExitStack() as stack:
        for member in members:
            stack.callback(member.close)
            with member.contained():
                member.open(source)
        runs = [member.run for member in members if member.run is not None and not member.problem]
        if runs:
            # The members are alike in all that decides their threads.
            with blas(runs[0].opened.plan.threads):
                Training(runs, guard).train()
        list(mapped(lambda member: member.finish(source, len(members)), members))
    return members
