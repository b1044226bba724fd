"""Four ways to a solution: closed form, Newton steps, fourth moments, stochastic training; only the last loads torch.

The import of torch takes longer than most problems take to be solved, so whatever all runs share does without it; and
the main method trains without it on a CPU.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  not to be imported first, by torch, while a process ends
import contextlib
import importlib
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.host import HostMethod, covers
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.processes import available_threads, blas, may_have_gpu, pick_threads, place
from sigmapca_cli.sources.base import Source

if TYPE_CHECKING:
    from sigmapca_cli.runner.lifecycle import Work
    from sigmapca_cli.signals import Guard

Facts = dict[str, Any]
SMALL = 1_000_000_000  # entries of a matrix whose covariance takes about a second


@dataclass(frozen=True)
class Newton:
    """The main loss, solved by `solvers.run`."""

    kind: str = "newton"

    @classmethod
    def build(cls, cfg: Any) -> Newton:
        """InputError for a configuration that the solver does not know."""
        from sigmapca_cli.solvers.projected import refusal

        if problem := refusal(cfg):
            raise InputError(problem)
        return cls()


@dataclass(frozen=True)
class Moments:
    """The maximum of the function of variances and fourth cumulants, found by `solvers.moments_run`."""

    kind: str = "moments"

    @classmethod
    def build(cls, cfg: Any) -> Moments:
        """InputError for a configuration that the solver does not know."""
        from sigmapca_cli.solvers.moments_fit import refusal

        if problem := refusal(cfg):
            raise InputError(problem)
        return cls()


SOLVERS: dict[str, Any] = {"newton": Newton, "moments": Moments}


def method_of(cfg: Any) -> Any:
    """The method of a whole configuration; its `kind` is direct, newton, moments or trained."""
    if cfg.model.kind == "direct":
        from sigmapca_cli.methods.direct import DirectMethod

        return DirectMethod.build(cfg)
    if cfg.solver.name in SOLVERS:
        return SOLVERS[cfg.solver.name].build(cfg)
    if on_host(cfg):
        return HostMethod.build(cfg)
    from sigmapca_cli.methods.method import build

    return build(cfg)


def on_host(cfg: Any) -> bool:
    """Whether a run trains on NumPy's arrays: one process, on a CPU, of a configuration that the step by hand covers.

    Where there may be a GPU, `device=auto` has to ask torch.
    """
    return (
        covers(cfg)
        and place() is None
        and (cfg.device == "cpu" or (cfg.device == "auto" and not may_have_gpu()))
    )


def wants_torch(cfg: Any) -> bool:
    """Whether torch has to be imported for a run."""
    return not (cfg.model.kind == "direct" or cfg.solver.name in SOLVERS or on_host(cfg))


def prepared(cfg: Any) -> Source:
    """The data of a run. Where torch is still to be imported, a thread does so meanwhile.

    The eigenvectors are worked out meanwhile too, as every run needs them; but not those of large data, where
    what the configuration gets wrong is to be said before minutes of work.
    """
    from sigmapca_cli.sources import build

    if not wants_torch(cfg) or "torch" in sys.modules:
        return build(cfg.data)
    # Not a daemon: a process that ends while a library is being loaded would crash.
    loading = threading.Thread(target=import_torch, name="import torch")
    loading.start()
    source = build(cfg.data)
    if loading.is_alive() and source.n * source.p <= SMALL:
        source.principal_axes()
    loading.join()
    return source


def import_torch() -> None:
    """Import torch; what goes wrong is said where it is used, or nowhere, if the process is ending already."""
    with contextlib.suppress(Exception):
        importlib.import_module("torch")


def solve(begun: Work, guard: Guard) -> tuple[Solution, Facts]:
    """The solution of a run, and what is to be stored about how it was found."""
    cfg, source = begun.job.cfg, begun.source
    with blas(begun.threads):
        if begun.method.kind == "trained":
            from sigmapca_cli.runner import stochastic

            return stochastic.solve(begun, guard)
        if begun.method.kind == "newton":
            from sigmapca_cli.solvers.projected import fit as newton_fit

            solution, facts = newton_fit(cfg, source)
            return solution, {**facts, **solution.extra}
        if begun.method.kind == "moments":
            from sigmapca_cli.solvers.moments_fit import fit as moments_fit

            solution, facts = moments_fit(cfg, source)
            return solution, {**facts, **solution.extra}
        solution = begun.method.fit(cfg, source)
        return solution, {"converged": True, "relative_gradient": 0.0, **solution.extra}


def device_of(cfg: Any, method: Any) -> Any:
    """Where a run computes. Closed forms and Newton steps do so on the CPU, whatever else is there."""
    if (method.kind != "trained" and cfg.device in ("auto", "cpu")) or isinstance(method, HostMethod):
        return "cpu"
    from sigmapca_cli.training import device as torch_device

    return torch_device.pick_device(cfg.device)


def threads_of(cfg: Any, method: Any, source: Source, before: int) -> int:
    """Threads of a run: those asked for, those it began with, or as many as suit its work."""
    if cfg.threads or before:
        return int(cfg.threads or before)
    if method.kind != "trained":
        return available_threads()
    return pick_threads(None, cfg.batch_size * source.p * cfg.k)  # multiplications of a step
