"""The settings of `SigmaPCA` as its solvers take them: what was not given is chosen here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BELONGS = {
    "a": ("newton", "sgd"),
    "nonlinearity": ("newton", "sgd"),
    "derivative": ("newton", "sgd"),
    "lam": ("moments",),
    "tau": ("independence",),
    "ordered": ("independence",),
}
"""Parameter: the solvers that have it. One that is given without a solver chooses the first of them."""
SOLVERS = ("independence", "newton", "moments", "sgd")


@dataclass(frozen=True)
class Settings:
    """What a solver is asked for; the parameters of other solvers have their defaults."""

    solver: str
    tau: float | str
    ordered: bool | None
    lam: float
    a: float | str
    nonlinearity: str
    derivative: str
    max_iter: int
    tol: float
    random_state: Any


def settings_of(model: Any) -> Settings:
    """Return the settings of an estimator. Raise ValueError for those that contradict each other."""
    given = {name: getattr(model, name) for name in BELONGS}
    given = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in given.items()
        if value is not None
        and not (name in ("tau", "ordered") and isinstance(value, str) and value == "auto")
    }
    solver = solver_of(model.solver, given)
    tau = given.get("tau", "auto")
    number = isinstance(tau, int | float) and not isinstance(tau, bool)
    if tau != "auto" and not (number and np.isfinite(tau) and tau >= 0):
        raise ValueError(f"tau={tau!r}: must be a finite number ≥ 0, or auto")
    ordered = given.get("ordered")
    if ordered is not None and not isinstance(ordered, bool | np.bool_):
        raise ValueError(f"ordered={ordered!r}: must be True, False or 'auto'")
    return Settings(
        solver=solver,
        tau=tau,
        ordered=None if ordered is None else bool(ordered),
        lam=given.get("lam", 0.1),
        a=given.get("a", "auto"),
        nonlinearity=given.get("nonlinearity", "scaled_tanh"),
        derivative=given.get("derivative", "true"),
        max_iter=model.max_iter,
        tol=model.tol,
        random_state=model.random_state,
    )


def solver_of(named: str | None, given: dict[str, Any]) -> str:
    """Return the solver: the one named, else the one that has the parameters given, else independence."""
    if named is not None and named not in SOLVERS:
        raise ValueError(f"solver={named!r}: choose from {', '.join(SOLVERS)}")
    solver = named or next((BELONGS[name][0] for name in given), SOLVERS[0])
    for name, value in given.items():
        if solver not in BELONGS[name]:
            has = " and ".join(f"solver={one!r}" for one in BELONGS[name])
            why = f"solver={solver!r}" if named else f"{next(iter(given))}= chooses solver={solver!r}, which"
            raise ValueError(f"{name}={value!r}: {why} has no {name}, {has} does; leave one of them out")
    return solver
