"""From panels to runs: what is composed once and trained side by side. Each run is an ordinary one, found by hash."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.reproduce.experiment import Experiment
from sigmapca_cli.reproduce.plan import Setting, name_of
from sigmapca_cli.system.errors import RunFailed, SigmapcaError, Stopped
from sigmapca_cli.system.processes import end_with

if TYPE_CHECKING:
    from sigmapca_cli.composition.job import Job


@dataclass(frozen=True)
class Task:
    """One run of one experiment; with another solver it is solved so where that solver knows its model."""

    experiment: str
    key: str
    overrides: tuple[str, ...]
    solver: str = "stochastic"


@dataclass(frozen=True)
class Planned:
    """The run that one or more panels show: its job, or why there is none; equal groups can be trained side by side."""

    tasks: tuple[Task, ...]
    job: Job | None = None
    group: str | None = None
    problem: str = ""


def tasks(experiment: Experiment, setting: Setting) -> list[Task]:
    """All runs of an experiment that a setting asks for."""
    return [
        Task(
            experiment.name,
            name_of(panel.key, repetition),
            tuple(experiment.overrides(panel, setting, repetition)),
            "stochastic" if panel.solved else setting.solver,
        )
        for panel, repetition in experiment.runs(setting)
    ]


def plan(task: Task) -> Planned:
    """Compose a task; a mistake in one is a fact to report, not the end of the others."""
    from sigmapca_cli.runner.grouped import group_key
    from sigmapca_cli.runner.plan import method_of

    try:
        made = job(task)
        return Planned((task,), made, group_key(made, method_of(made.cfg), across_seeds=True))
    except SigmapcaError as problem:
        return Planned((task,), problem=str(problem))


def job(task: Task) -> Job:
    """The typed job that the command line would compose."""
    found = composed(task.overrides)
    if task.solver != "stochastic":
        from sigmapca_cli.runner.plan import SOLVERS
        from sigmapca_cli.settings.ways import Way

        if SOLVERS[Way(task.solver)].refusal(found.cfg) is None:
            return composed((*task.overrides, f"solver={task.solver}"))
    return found


def composed(overrides: tuple[str, ...]) -> Job:
    """The job of these overrides; a run that is finished already is not made again."""
    from sigmapca_cli.composition.compose import compose_job

    return compose_job([*overrides, "if_exists=skip"])


def merged(planned: Iterable[Planned]) -> list[Planned]:
    """Panels of one configuration, of whatever experiment, share one run."""
    found: dict[str, Planned] = {}
    for number, one in enumerate(planned):
        name = one.job.hash if one.job is not None else f"problem {number}"
        found[name] = replace(one, tasks=found[name].tasks + one.tasks) if name in found else one
    return list(found.values())


def units(planned: Iterable[Planned]) -> list[list[Planned]]:
    """What one process makes in one go: runs of one group, as many as are worth it, or a single run."""
    from sigmapca_cli.runner.grouped import chunks_of

    groups: dict[str, list[Planned]] = {}
    for number, one in enumerate(merged(planned)):
        groups.setdefault(one.group or f"alone {number}", []).append(one)
    found: list[list[Planned]] = []
    for members in groups.values():
        job = members[0].job
        found += [list(part) for part in chunks_of(members, job.cfg.k)] if job is not None else [members]
    return found


# each(function, items): results as they come, from as many processes as there are jobs.
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


@dataclass(frozen=True)
class Outcome:
    """Where a panel's run is, or why there is none; `beside` runs were made together in so many seconds each."""

    task: Task
    folder: str = ""
    problem: str = ""
    seconds: float = 0.0
    beside: int = 1


def perform(unit: list[Planned]) -> list[Outcome]:
    """Make the runs of a unit, or find them finished; one that fails is reported, and ends no other."""
    began = time.monotonic()
    ended = together(unit) if len(unit) > 1 else None
    if ended is None and len(unit) > 1:
        return [outcome for one in unit for outcome in perform([one])]
    folder_or_problem = ended or [alone(one) for one in unit]
    seconds = (time.monotonic() - began) / len(unit)
    return [
        Outcome(task, folder, problem, seconds, len(unit))
        for one, (folder, problem) in zip(unit, folder_or_problem, strict=True)
        for task in one.tasks
    ]


def alone(one: Planned) -> tuple[str, str]:
    """(folder, problem) of one run."""
    from sigmapca_cli.runner.run import run

    if one.job is None:
        return "", one.problem
    with quiet():
        try:
            return str(run(one.job)), ""
        except Stopped:
            raise
        except SigmapcaError as problem:
            return "", str(problem)
        except Exception as problem:
            # A defect in one method must not cost the hours of the others; its trace is in the run's train.log.
            return "", f"internal error, {type(problem).__name__}: {problem}"


def together(unit: list[Planned]) -> list[tuple[str, str]] | None:
    """(folder, problem) of runs trained side by side; None where they have to be tried one by one."""
    from sigmapca_cli.data import build
    from sigmapca_cli.runner.grouped import train_together
    from sigmapca_cli.system.signals import Guard

    jobs: list[Job] = [one.job for one in unit if one.job is not None]
    with quiet(), Guard() as guard:
        try:
            members = train_together(jobs, build(jobs[0].cfg.data), guard)
        except Stopped:
            raise
        except Exception:
            # Whose fault it was, each shows alone; those that are finished are not made again.
            return None
    return [("", str(m.problem)) if m.problem else (str(m.folder), "") for m in members]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Progress and warnings of single runs go to their own train.log only: verdicts say what matters."""
    logger = logging.getLogger("sigmapca")
    before = logger.handlers[:]
    propagate = logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.handlers, logger.propagate = before, propagate


@contextlib.contextmanager
def crew(jobs: int) -> Iterator[Each]:
    """Whoever does the work: `jobs` processes of one thread each, or this one for one job."""
    if jobs == 1:
        yield map
        return
    with pool(jobs) as workers:
        yield functools.partial(as_they_come, workers)


def as_they_come(
    workers: ProcessPoolExecutor, function: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """function(item) for every item, the quickest first. An error here, such as Ctrl-C, stops the processes."""
    try:
        with deaf_children():
            futures = [workers.submit(function, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise RunFailed("a run's process was killed (out of memory?): try --jobs 1") from None
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        for child in active_children():
            child.terminate()  # a run that it trains is saved
        raise


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that begin in this block ignore Ctrl-C, which a terminal sends to all: this process stops them.

    While they import what they need, nothing in them could handle it.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes of one thread each: as many as there are cores keep all of them busy."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with ProcessPoolExecutor(
            jobs, get_context("spawn"), initializer=end_with, initargs=(os.getpid(),)
        ) as workers:
            yield workers
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def short(folder: str) -> str:
    """A run's folder relative to here, where it lies below."""
    with contextlib.suppress(ValueError):
        return str(Path(folder).resolve().relative_to(Path.cwd()))
    return folder
