"""One run from a composed configuration to a finished run directory: the entry of this room."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.job import Job
from sigmapca_cli.runner.execute import load_source, solve
from sigmapca_cli.runner.lifecycle import finish_run, opened_run
from sigmapca_cli.system.processes import distributed_env
from sigmapca_cli.system.signals import Guard

log = logging.getLogger("sigmapca")


def run(job: Job, rows: Any = None) -> Path:
    """Prepare the data and the folder, train or solve, evaluate, write. Return the run's folder.

    rows: those of `data.matrix.held.as_rows` that a program holds, in place of the file that data.path names.
    Where `torchrun` or `srun` has started several processes for one run, they solve it together.
    Raise InputError for what the configuration or the data get wrong, RunFailed for a run that diverges or that
    strict=true refuses, Stopped after a signal.
    """
    here = distributed_env()
    if here is not None:
        from sigmapca_cli.runner import shared

        return shared.run(job, here, rows)
    with Guard() as guard:
        source = load_source(job.cfg, rows)
        with opened_run(job, source) as opened:
            if isinstance(opened, Path):
                return opened
            start = time.monotonic()
            solution, facts = solve(opened, guard)
            log.info("solved in %.2f s", time.monotonic() - start)
            finish_run(opened, solution, facts)
            return opened.folder
