"""What is solved at once, from the whole data: which configurations each solver takes, and its call.

A solver is imported by the run that it solves: with what they need of SciPy all take half a second.
"""

from __future__ import annotations

from typing import Any

from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.config import SCALED, refuse_unused
from sigmapca_cli.methods.direct import DirectMethod
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.start import ANSWERS, start_of_solver
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.solvers.newton.scores import ASYMMETRIC_SCALE, lookup
from sigmapca_cli.system.errors import InputError

Facts = dict[str, Any]
"""What is stored in /evaluation of how a solution was found; `converged` is always among it."""


def refusal_of_direct(cfg: Config) -> str | None:
    """Return why a configuration names no closed form, or has pieces without a meaning there; None if it can be."""
    return refused_by(DirectMethod.build, cfg)


def solve_direct(cfg: Config, source: Source) -> tuple[Solution, Facts]:
    """Return the solution. A closed form has converged; an iteration says in `extra` whether it has."""
    return DirectMethod.build(cfg).fit(cfg, source), {"converged": True, "relative_gradient": 0.0}


def refused_by(check: Any, *arguments: Any) -> str | None:
    """Return the message of the InputError that a check raises, or None."""
    try:
        check(*arguments)
    except InputError as problem:
        return str(problem)
    return None


def refusal_of_solver(cfg: Config, solver: str, purpose: str) -> str | None:
    """Return why no solver can take a resolved configuration, or None. `purpose`: what this solver does."""
    if cfg.model.objective != "main":
        return f"solver={solver} {purpose}; train model={cfg.model.name} with solver=stochastic"
    if problem := refused_by(refuse_unused, cfg.model):
        return problem
    if cfg.ordering.name != "none":
        return f"solver={solver} orders by variance at the end; use ordering=none, or solver=stochastic"
    if cfg.regularisers:
        return f"solver={solver} knows no regularisers; drop them, or use solver=stochastic"
    if cfg.sigma.name not in ("batch", "ema", "data"):
        return f"solver={solver} takes sigma from the data, not sigma={cfg.sigma.name}; use sigma=data"
    if cfg.init in ("file", *ANSWERS) and cfg.model.family == "linear_ica":
        return f"solver={solver} starts linear ICA from linear PCA; drop init={cfg.init}, or use solver=stochastic"
    return None


def refusal_of_newton(cfg: Config) -> str | None:
    """Return why Newton's steps cannot take a resolved configuration, or None if they can."""
    if problem := refusal_of_solver(cfg, "newton", "solves the main loss"):
        return problem
    h = cfg.nonlinearity
    if h.name == "asymmetric" and h.c != ASYMMETRIC_SCALE:
        return f"solver=newton knows nonlinearity.c={ASYMMETRIC_SCALE} only; use that, or solver=stochastic"
    if cfg.model.family == "linear_ica":
        return None
    if cfg.solver.starts > 1 and cfg.a == "auto":
        return "solver.starts: solutions with a=auto may have different a, and no common J ranks them; give a a number"
    return refused_by(lookup, h.name, h.derivative)


def solve_newton(cfg: Config, source: Source) -> tuple[Solution, Facts]:
    """Return the stationary point of the main loss that Newton's steps find, and how it was found.

    init=file starts from the filters of that file, init=moments from the answer of solver=moments; any other init
    from the PCA solution.
    """
    from sigmapca_cli.solvers.main_loss.fit import lica_fit, newton_fit

    if cfg.model.family == "linear_ica":
        return lica_fit(source, cfg.k, **settings_of(cfg))
    name = cfg.nonlinearity.name
    return newton_fit(
        source,
        cfg.k,
        cfg.nonlinearity.a if name in SCALED else 1.0,
        name,
        cfg.nonlinearity.derivative,
        polish=cfg.solver.polish,
        start=start_of_solver(cfg, source),
        a_from=cfg.solver.a_from,
        **settings_of(cfg),
    )


def refusal_without_a(cfg: Config) -> str | None:
    """Return why a solver whose function has no nonlinearity cannot take a resolved configuration, or None."""
    solver = cfg.solver.name
    if problem := refusal_of_solver(cfg, solver, "finds the axes of nonlinear PCA, or of linear ICA"):
        return problem
    if cfg.solver.polish:
        return f"solver={solver} has no polish; drop solver.polish, or use solver=newton init={solver}"
    h = cfg.nonlinearity
    if cfg.model.family != "linear_ica" and (h.name, h.derivative) != ("scaled_tanh", "true"):
        return f"solver={solver} uses no nonlinearity; leave nonlinearity={h.name} out, or use solver=newton"
    return None


def solve_moments(cfg: Config, source: Source) -> tuple[Solution, Facts]:
    """Return the maximum of the function of variances and fourth cumulants, and how it was found.

    init=file starts from the filters of that file, init=orthogonal from a random rotation of the principal axes
    (by seed), any other init from the principal axes.
    """
    from sigmapca_cli.solvers.fourth_moments.fit import moments_fit

    start = start_of_solver(cfg, source) if cfg.init == "file" else None
    return moments_fit(source, cfg.k, cfg.solver.lam, start=start, **rotation_of(cfg), **settings_of(cfg))


def solve_independence(cfg: Config, source: Source) -> tuple[Solution, Facts]:
    """Return the minimum of the total correlation of components that keep their variances, and how it was found.

    init=file starts from the filters of that file, init=moments from the answer of solver=moments, init=orthogonal from
    a random rotation of the principal axes (by seed), any other init from the principal axes.
    """
    from sigmapca_cli.solvers.independence.fit import independence_fit

    start = start_of_solver(cfg, source)
    return independence_fit(
        source, cfg.k, cfg.solver.tau, start=start, **rotation_of(cfg), **settings_of(cfg)
    )


def rotation_of(cfg: Config) -> dict[str, Any]:
    """Return which rotation is sought, of white rows or of others, and the seed of a random one to start from."""
    return {
        "whiten": cfg.model.family == "linear_ica",
        "seed": cfg.seed if cfg.init == "orthogonal" else None,
    }


def settings_of(cfg: Config) -> dict[str, Any]:
    """Return what every solver is given: when it stops, from how many starts, and how rows and threads are taken."""
    own = cfg.solver
    return {
        "starts": own.starts, "tol": own.tol, "max_iter": own.max_iterations, "threads": cfg.threads, "clip": own.clip,
    }  # fmt: skip
