"""What a plan is carried out with: the data, and the solution by the plan's way."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from typing import Any

from sigmapca_cli.data import build
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.footprint import forecast_of
from sigmapca_cli.runner.open_run import OpenRun
from sigmapca_cli.runner.plan import SOLVERS, Plan, needs_torch
from sigmapca_cli.runner.solved import Facts
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.processes import blas
from sigmapca_cli.system.signals import Guard

QUICK_ENTRIES = 1_000_000_000
"""Entries of a matrix whose covariance takes about a second."""


def load_source(cfg: Config, rows: Any = None) -> Source:
    """Return the data of a run. Where torch is still to be imported, a thread imports it meanwhile.

    The eigenvectors are computed meanwhile too, as every run needs them. For large data they are left for later, so
    that configuration errors are reported first. rows: as for `runner.run.run`.
    """
    if not needs_torch(cfg) or "torch" in sys.modules:
        return made_source(cfg, rows)
    # Not a daemon: a process that ends while a library is being loaded would crash.
    loading = threading.Thread(target=import_torch, name="import torch")
    loading.start()
    source = made_source(cfg, rows)
    if loading.is_alive() and source.n * source.p <= QUICK_ENTRIES and source.p <= WIDE:
        source.principal_axes()
    loading.join()
    return source


def made_source(cfg: Config, rows: Any) -> Source:
    """Return the source of the data that a configuration names, or of rows that are in memory already."""
    if rows is None:
        return build(cfg.data, forecast_of(cfg))
    from sigmapca_cli.data.matrix.held import held_source

    return held_source(rows, cfg.data, forecast_of(cfg))


def import_torch() -> None:
    """Import torch. An error is raised again where torch is used; it is of no interest if the process is ending."""
    with contextlib.suppress(Exception):
        importlib.import_module("torch")


def solve(opened: OpenRun, guard: Guard) -> tuple[Solution, Facts]:
    """Return the solution of an open run, and what is to be stored about how it was found."""
    plan = opened.plan
    with blas(plan.threads):
        if plan.way in SOLVERS:
            return at_once(plan, opened.source)
        from sigmapca_cli.runner import stochastic

        return stochastic.solve(opened, guard)


def at_once(plan: Plan, source: Source) -> tuple[Solution, Facts]:
    """Return the solution of a closed form or a solver, and how it was found."""
    solution, facts = SOLVERS[plan.way].solve(plan.cfg, source)
    return solution, {**facts, **solution.extra}
