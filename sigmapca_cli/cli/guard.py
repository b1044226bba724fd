"""Around the task of every job of a sweep: its error is announced and noted, and the others go on."""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigmapca_cli.launchers.failures import SweepContext
from sigmapca_cli.system.errors import SigmapcaError, Signalled, Stopped


class EndOfSweep(SystemExit):
    """The exit status with which a job ends its whole sweep. Its pickle is that status alone.

    Hydra 1.4 hangs its own record of the job on the error, and the error on the record: a launcher's process would
    pickle them into each other for a minute.
    """

    def __reduce__(self) -> tuple[type[SystemExit], tuple[Any, ...]]:
        """Return how another process makes the plain SystemExit."""
        return SystemExit, self.args


def in_sweep(task: Callable[[Any], Any], cfg: Any, context: SweepContext | None = None) -> Any:
    """Run one job of a sweep. Called by the module-level functions that launchers pickle.

    Its error is announced at once and noted in the job's folder, and the other jobs go on, unless the context says
    `fail_fast`.
    """
    from multiprocessing import current_process

    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    from sigmapca_cli.storage.lock import InUse
    from sigmapca_cli.system.processes import end_with

    # joblib's workers do not notice that their parent was killed.
    if current_process().name.startswith("Loky"):
        end_with(os.getppid())
    context = context or SweepContext()
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    overrides: Any = OmegaConf.to_container(hydra.overrides.task)
    number = folder.name  # by which the table at the end calls it
    try:
        return task(cfg)
    except InUse as problem:
        # The folder is another process's, which does this very job: no note is written into it.
        context.announce(number, str(problem))
        return None
    except (Stopped, Signalled) as problem:
        context.announce(number, str(problem))
        # Not an Exception: Hydra would go on with the next job, which the sender of the signal did not mean.
        raise EndOfSweep(problem.exit_status) from None
    except SigmapcaError as problem:
        status = problem.exit_status
        context.failed(number, folder, problem, overrides)
    except Exception as problem:
        status = 1
        context.failed(number, folder, problem, overrides, traceback.format_exc())
    if context.fail_fast:
        raise EndOfSweep(status)
    return None
