"""Newton's solver from several starts: how many solutions a finite a has, and which of them has the greatest J."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.linalg.rotations import matches, random_orthonormal
from sigmapca_cli.solvers.fourth_moments.maximum import SAME, maximise
from sigmapca_cli.solvers.newton import merit
from sigmapca_cli.solvers.newton.solve import NewtonResult, solve
from sigmapca_cli.solvers.rows.parallel import std_of
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.system.errors import InputError

Array = np.ndarray

ANCHOR = 10.0
"""The larger a whose solution is one of the starts: the image data that were tried have few solutions there."""
GAUSSIAN_LOG_COSH = 0.3745672
"""E[ln cosh ν] of a standard Gaussian ν. Linear ICA has a sign for each component: J is then Σ|E[ln cosh z] − this|."""


@dataclass(frozen=True)
class Several:
    """The solutions that several starts ended in.

    result: the converged solution with the greatest J, or the one with the smallest residual if none converged;
    agreeing: number of starts that ended in it; solutions: number of different
    solutions among the starts that converged; nearest, farthest: largest and smallest mean |cos| between its filters
    and those of another solution, 1 if there is no other.
    """

    result: NewtonResult
    starts: int
    agreeing: int
    solutions: int
    nearest: float
    farthest: float


def solve_from(Y: Array, starts: int, *, start: Array | None = None, **settings: Any) -> Several:
    """Solve from several starts, and keep the solution with the greatest J.

    The starts are, in this order: the given one (or the PCA solution), the maximum of F (`maximum.maximise`), linear
    ICA (log cosh), the solution at a = 10 from the maximum of F, and random rotations, always the same ones. Y, start
    (k, k) and settings are as for `newton.solve`, with one number a: solutions with different a have no common J, so
    that InputError refuses "auto".

    J is a function only for fixed δ (docs/solver.md): the solutions are compared at the mean of their δ. Components of
    different solutions are paired by the order of their variances.
    """
    if starts > 1 and isinstance(settings.get("a"), str):
        raise InputError(
            "solver.starts: solutions with a=auto may have different a, and no common J ranks them; give a a number"
        )
    begins = rotations(Y, starts, start, settings)
    ends = [solve(Y, start=R, **settings) for _, R in begins]
    if starts == 1:
        return Several(ends[0], 1, 1, int(ends[0].converged), 1.0, 1.0)
    with on_threads(settings.get("threads")):
        values = common_J(Y, ends, settings)
    best = chosen(ends, values)
    return compared([name for name, _ in begins], ends, best, values)


def rotations(
    Y: Array, starts: int, start: Array | None, settings: dict[str, Any]
) -> list[tuple[str, Array | None]]:
    """Return names and rotations of the starts; a start is computed only if it is asked for."""
    found: list[tuple[str, Array | None]] = [("pca" if start is None else "given", start)]
    threads = settings.get("threads")
    if starts > 1:
        found.append(("moments", maximise(Y, threads=threads).R))
    if starts > 2 and settings.get("nonlinearity") != "logcosh":
        whitened = (Y / std_of(Y)).astype(Y.dtype)
        found.append(("ica", solve(whitened, nonlinearity="logcosh", threads=threads).R))
        if starts > 3 and (settings.get("nonlinearity"), settings.get("a")) != ("scaled_tanh", ANCHOR):
            found.append(("a=10", solve(Y, a=ANCHOR, start=found[1][1], threads=threads).R))
    k = Y.shape[1]
    found += [(f"random {i}", random_orthonormal(k, k, i)) for i in range(1, starts + 1 - len(found))]
    return found


def common_J(Y: Array, ends: Sequence[NewtonResult], settings: dict[str, Any]) -> Array:
    """Return J of every solution at the mean δ of all, (len(ends),)."""
    primitive = merit.primitive_of(
        settings.get("nonlinearity", "scaled_tanh"), settings.get("derivative", "true")
    )
    offset = GAUSSIAN_LOG_COSH if settings.get("nonlinearity") == "logcosh" else 0.0
    means = [
        end.signs * (merit.mean_primitive(Y, end.R / end.sigma, primitive, end.a) - offset) for end in ends
    ]
    delta = np.mean([4 * mean - end.m for mean, end in zip(means, ends, strict=True)], axis=0)
    return np.array([merit.value(end.sigma, mean, delta) for mean, end in zip(means, ends, strict=True)])


def chosen(ends: Sequence[NewtonResult], values: Array) -> int:
    """Return the position of the converged solution with the greatest J, or else of the smallest residual."""
    converged = [i for i, end in enumerate(ends) if end.converged]
    if not converged:
        return int(np.argmin([end.relative_residual for end in ends]))
    return max(converged, key=lambda i: values[i])


def compared(names: Sequence[str], ends: Sequence[NewtonResult], best: int, values: Array) -> Several:
    """Return the kept solution, with notes on the others."""
    kept = ends[best]
    alike = np.array([matches(kept.R, end.R).mean() for end in ends])
    converged = np.array([end.converged for end in ends])
    others = [i for i in range(len(ends)) if converged[i] and alike[i] < SAME]
    count = bool(converged.any()) + distinct([ends[i].R for i in others])
    found = Several(
        kept,
        len(ends),
        int((alike >= SAME).sum()),
        count,
        float(max((alike[i] for i in others), default=1.0)),
        float(min((alike[i] for i in others), default=1.0)),
    )
    if unfinished := int((~converged).sum()):
        kept.notes.append(f"{unfinished} of {len(ends)} starts did not converge")
    if others:
        gap = max(1 - values[i] / values[best] for i in others)
        kept.notes.append(
            f"{len(ends)} starts ended in {count} different solutions, so this setting has no single answer on these "
            f"data; the one of largest J was kept (start: {names[best]}); the others are lower by {gap:.1e} of J at "
            f"most, and the mean |cos| of their filters with the kept ones is {found.farthest:.3f} to "
            f"{found.nearest:.3f}"
        )
    return found


def distinct(turns: Sequence[Array]) -> int:
    """Return how many of the rotations differ from all before them."""
    seen: list[Array] = []
    for R in turns:
        if all(matches(R, other).mean() < SAME for other in seen):
            seen.append(R)
    return len(seen)
