"""solver=newton as a method of a run: which configurations it takes, and where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.config import SCALED
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.contracts import Facts, SolvedMethod, refusal_of_solver
from sigmapca_cli.runner.start import start_of_solver
from sigmapca_cli.solvers.projected import lica_fit, newton_fit
from sigmapca_cli.solvers.scores import ASYMMETRIC_SCALE, lookup
from sigmapca_cli.sources.base import Source


@dataclass(frozen=True)
class Newton(SolvedMethod):
    """The main loss, solved by Newton steps."""

    kind: ClassVar[str] = "newton"

    @classmethod
    def build(cls, cfg: Config) -> Newton:
        """Raise InputError for a configuration that the solver cannot take."""
        if problem := refusal(cfg):
            raise InputError(problem)
        return cls()

    def solve(self, cfg: Config, source: Source) -> tuple[Solution, Facts]:
        """Return the solution of a resolved configuration, and how it was found.

        init=file starts from the filters of that file, init=moments from the answer of solver=moments; any other init
        from the PCA solution.
        """
        own = cfg.solver
        if cfg.model.family == "linear_ica":
            return lica_fit(source, cfg.k, own.tol, own.max_iterations, cfg.threads, own.starts, own.clip)
        name = cfg.nonlinearity.name
        return newton_fit(
            source,
            cfg.k,
            cfg.nonlinearity.a if name in SCALED else 1.0,
            name,
            cfg.nonlinearity.derivative,
            tol=own.tol,
            max_iter=own.max_iterations,
            threads=cfg.threads,
            polish=own.polish,
            start=start_of_solver(cfg, source),
            starts=own.starts,
            clip=own.clip,
        )


def refusal(cfg: Config) -> str | None:
    """Return why the solver cannot take a resolved configuration, or None if it can."""
    if problem := refusal_of_solver(cfg, "newton", "solves the main loss"):
        return problem
    if cfg.init in ("file", "moments") and cfg.model.family == "linear_ica":
        return (
            f"solver=newton starts linear ICA from linear PCA; drop init={cfg.init}, or use solver=stochastic"
        )
    h = cfg.nonlinearity
    if h.name == "asymmetric" and h.c != ASYMMETRIC_SCALE:
        return f"solver=newton knows nonlinearity.c={ASYMMETRIC_SCALE} only; use that, or solver=stochastic"
    if cfg.solver.starts > 1 and cfg.a == "auto" and cfg.model.family != "linear_ica":
        return "solver.starts: solutions with a=auto may have different a, and no common J ranks them; give a a number"
    try:
        if cfg.model.family != "linear_ica":
            lookup(h.name, h.derivative)
    except InputError as problem:
        return str(problem)
    return None
