"""Around the task of every job that Hydra runs: a single run's error is kept for the caller, a sweep's is noted."""

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError, SigmapcaError, Stopped
from sigmapca_cli.launchers.failures import SweepContext


@dataclass
class Ended:
    """How the job of this process ended, where Hydra would have printed its own words about it."""

    problem: Exception | None = None


ended = Ended()


class EndOfSweep(SystemExit):
    """The exit status with which a job ends its whole sweep. Its pickle is that status alone.

    Hydra 1.4 hangs its own record of the job on the error, and the error on the record: a launcher's process would
    pickle them into each other for a minute.
    """

    def __reduce__(self) -> tuple[type[SystemExit], tuple[Any, ...]]:
        """Return how another process makes the plain SystemExit."""
        return SystemExit, self.args


def guarded(task: Callable[..., Any], cfg: Any, context: SweepContext | None = None) -> Any:
    """Run the task of one job. Called by the module-level functions that launchers pickle.

    A single run's error is kept for `run_job`, which raises it after Hydra is done. In a sweep it is announced at
    once and noted in the job's folder, and the other jobs go on, unless the context says `fail_fast`.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if HydraConfig.get().mode == RunMode.RUN:
        try:
            return task(cfg)
        except Exception as problem:
            if os.environ.get("SIGMAPCA_DEBUG"):
                raise
            ended.problem = problem
            return None
    return in_sweep(task, cfg, context or SweepContext())


def in_sweep(task: Callable[..., Any], cfg: Any, context: SweepContext) -> Any:
    """Run one job of a sweep: its error is announced at once and noted; the other jobs go on."""
    from hydra.core.hydra_config import HydraConfig

    from sigmapca_cli.runs.lock import InUse

    hydra = HydraConfig.get()
    folder, overrides = Path(hydra.runtime.output_dir), list(hydra.overrides.task)
    number = folder.name  # by which the table at the end calls it
    try:
        return task(cfg)
    except InUse as problem:
        # The folder is another process's, which does this very job: no note is written into it.
        context.announce(number, str(problem))
        return None
    except Stopped as problem:
        context.announce(number, str(problem))
        # Not an Exception: Hydra would go on with the next job, which the sender of the signal did not mean.
        raise EndOfSweep(problem.exit_status) from None
    except SigmapcaError as problem:
        status = problem.exit_status
        context.failed(number, folder, problem, overrides)
    except OverflowError as problem:
        status = InputError.exit_status
        context.failed(number, folder, InputError(f"a number is too large ({problem})"), overrides)
    except Exception as problem:
        status = 1
        context.failed(number, folder, problem, overrides, traceback.format_exc())
    if context.fail_fast:
        raise EndOfSweep(status)
    return None
