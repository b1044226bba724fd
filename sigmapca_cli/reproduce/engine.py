"""Run what is missing: each panel is one ordinary run, found again by the hash of its configuration."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from sigmapca_cli.errors import RunFailed, SigmapcaError, Stopped
from sigmapca_cli.reproduce.plan import Experiment, Setting


@dataclass(frozen=True)
class Task:
    """One panel of one experiment, small enough to be sent to another process."""

    experiment: str
    key: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """Where a panel's run is, or why there is none."""

    task: Task
    folder: str = ""
    problem: str = ""
    seconds: float = 0.0


def tasks(experiment: Experiment, setting: Setting) -> list[Task]:
    """All runs of an experiment."""
    return [
        Task(experiment.name, panel.key, tuple(experiment.overrides(panel, setting)))
        for panel in experiment.runs(setting)
    ]


def perform(task: Task) -> Outcome:
    """Make one run, or find it finished; a run that fails is a fact to report, not the end of the others."""
    from sigmapca_cli.training.run import run

    began = time.monotonic()
    with quiet():
        try:
            folder = str(run(job(task)))
        except Stopped:
            raise
        except SigmapcaError as problem:
            return Outcome(task, problem=str(problem), seconds=time.monotonic() - began)
        except Exception as problem:
            # A defect in one method must not cost the hours of the others; its trace is in the run's train.log.
            words = f"internal error, {type(problem).__name__}: {problem}"
            return Outcome(task, problem=words, seconds=time.monotonic() - began)
    return Outcome(task, folder, seconds=time.monotonic() - began)


def job(task: Task):  # type: ignore[no-untyped-def]  # Job lives behind heavy imports
    """The typed job that the command line would compose."""
    from hydra import compose, initialize_config_dir

    from sigmapca_cli.cli.places import conf_folder
    from sigmapca_cli.config import register
    from sigmapca_cli.job import job_of

    register()
    overrides = [*task.overrides, "if_exists=skip"]
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        made = job_of(compose("config", overrides))
    made.overrides = overrides
    return made


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


def perform_all(work: list[Task], jobs: int, say: Callable[[Outcome, int], None]) -> dict[Task, Outcome]:
    """Every task's outcome; `jobs` processes of one thread each, or here and now for one job."""
    outcomes: dict[Task, Outcome] = {}
    if jobs == 1:
        for task in work:
            outcomes[task] = perform(task)
            say(outcomes[task], len(outcomes))
        return outcomes
    with pool(jobs) as workers:
        waiting: list[Future[Outcome]] = [workers.submit(perform, task) for task in work]
        try:
            for future in as_completed(waiting):
                outcome = future.result()
                outcomes[outcome.task] = outcome
                say(outcome, len(outcomes))
        except BrokenProcessPool:
            raise RunFailed("a run's process was killed (out of memory?): try --jobs 1") from None
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


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


def end_with(parent: int) -> None:
    """A worker whose parent was killed would wait for work for ever: it looks, and leaves."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def short(folder: str) -> str:
    """A run's folder relative to here, where it lies below."""
    with contextlib.suppress(ValueError):
        return str(Path(folder).resolve().relative_to(Path.cwd()))
    return folder
