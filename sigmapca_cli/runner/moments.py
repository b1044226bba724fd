"""solver=moments as a method of a run: which configurations it takes, and where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.contracts import Facts, SolvedMethod, refusal_of_solver
from sigmapca_cli.runner.start import start_of_solver
from sigmapca_cli.solvers.moments_fit import moments_fit
from sigmapca_cli.sources.base import Source


@dataclass(frozen=True)
class Moments(SolvedMethod):
    """The maximum of the function of variances and fourth cumulants."""

    kind: ClassVar[str] = "moments"

    @classmethod
    def build(cls, cfg: Config) -> Moments:
        """Raise InputError for a configuration that the solver cannot take."""
        if problem := refusal(cfg):
            raise InputError(problem)
        return cls()

    def solve(self, cfg: Config, source: Source) -> tuple[Solution, Facts]:
        """Return the solution of a resolved configuration, and how it was found.

        init=file starts from the filters of that file, init=orthogonal from a random rotation of the principal axes
        (by seed), any other init from the principal axes.
        """
        return moments_fit(
            source,
            cfg.k,
            cfg.solver.lam,
            whiten=cfg.model.family == "linear_ica",
            start=start_of_solver(cfg, source) if cfg.init == "file" else None,
            seed=cfg.seed if cfg.init == "orthogonal" else None,
            starts=cfg.solver.starts,
            tol=cfg.solver.tol,
            max_iter=cfg.solver.max_iterations,
            threads=cfg.threads,
            clip=cfg.solver.clip,
        )


def refusal(cfg: Config) -> str | None:
    """Return why the solver cannot take a resolved configuration, or None if it can."""
    if problem := refusal_of_solver(cfg, "moments", "finds the axes of nonlinear PCA"):
        return problem
    if cfg.init == "file" and cfg.model.family == "linear_ica":
        return "solver=moments starts linear ICA from linear PCA; drop init=file, or use solver=stochastic"
    if cfg.solver.polish:
        return "solver=moments has no polish; drop solver.polish, or use solver=newton init=moments"
    h = cfg.nonlinearity
    if cfg.model.family != "linear_ica" and (h.name, h.derivative) != ("scaled_tanh", "true"):
        return f"solver=moments uses no nonlinearity; leave nonlinearity={h.name} out, or use solver=newton"
    return None
