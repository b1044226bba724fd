"""The climb to a maximum of F: first sweeps over pairs, then Newton's steps with the exact Hessian; F never falls.

It ends where the angle still to go (the length of Newton's step) is small and no direction curves upwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers import contrast, steps
from sigmapca_cli.solvers.fourth import Fourth, Point
from sigmapca_cli.solvers.krylov import Free
from sigmapca_cli.solvers.streamed import Streamed

Array = np.ndarray
View = Fourth | Streamed
Step = tuple[str, int, float, float]

NEAR = 0.3
"""Largest angle of a sweep, radians, below which Newton's steps begin."""
SWEEPS = 20
"""Sweeps after which they begin anyway."""
LONGEST = 0.5
"""Largest angle of one step, radians."""
SHORTEST = 2.0**-12
"""Share of a step below which F is held to be flat along it."""
ROUNDING = 1e-8
"""Scaled curvature that is rounding error where cumulants are held in float64."""
STREAMED_ROUNDING = 1e-3
"""The same where products of float32 rows are added up, and eigenvalues are found by iteration."""
EQUAL, STREAMED_EQUAL = 1e-14, 1e-9
"""Relative difference of two values of F that is rounding error."""
SETTLING = 0.01
"""Newton's step, radians, below which the gradient decides where F cannot."""
PAIRWISE = 60
"""Steps of all pairs at once after which Newton's steps begin, where there is no tensor."""


@dataclass(frozen=True)
class End:
    """How a climb ended: at a maximum, or at a saddle, or short of both; angle: radians that are still to go."""

    converged: bool
    saddle: bool
    angle: float


@dataclass(frozen=True)
class System:
    """−H at one rotation, on pairs i < j, whole or as a product; D > 0 makes S/D an angle.

    S (pairs,) is −gradient, as in the equations of the Newton solver: its roots are sought, J = −H is to be positive.
    """

    S: Array
    D: Array
    product: Callable[[Array], Array]
    J: Array | None = None

    @property
    def free(self) -> Free:
        """The equations in a Krylov space."""
        return Free(self.product, np.sqrt(self.D))

    @functools.cached_property
    def scaled(self) -> Array:
        """D^−½JD^−½, where J is held."""
        assert self.J is not None
        root = np.sqrt(self.D)
        return self.J / np.outer(root, root)

    @functools.cached_property
    def definite(self) -> bool:
        """Whether no direction curves upwards: a Cholesky factor exists."""
        try:
            np.linalg.cholesky(self.scaled + ROUNDING * np.eye(len(self.D)))
        except np.linalg.LinAlgError:
            return False
        return True

    def step(self) -> Array:
        """Newton's step where −H is positive; else the same with the absolute values of its eigenvalues."""
        if self.J is None:
            newton, guarded = self.free.both(self.S)
            rising = newton @ self.S < 0 and newton @ self.product(newton) > 0
            return newton if rising else guarded()
        root = np.sqrt(self.D)
        if self.definite:
            return (
                -np.asarray(np.linalg.solve(self.scaled + ROUNDING * np.eye(len(root)), self.S / root)) / root
            )
        if len(root) > steps.LARGEST_EIGEN:
            return self.free.guarded(self.S)
        return -np.linalg.solve(steps.positive(self.scaled), self.S / root) / root

    def rising(self) -> Array | None:
        """The direction that curves upwards most, largest entry 1; None at a maximum."""
        if len(self.D) == 0 or (self.J is not None and self.definite):
            return None
        if self.J is None or len(self.D) > steps.LARGEST_EIGEN:
            return self.free.unstable(STREAMED_ROUNDING if self.J is None else ROUNDING)
        direction = np.linalg.eigh(self.scaled)[1][:, 0] / np.sqrt(self.D)
        return np.asarray(direction / direction[np.abs(direction).argmax()])


def value(view: View, R: Array, lam: float) -> float:
    """F at R."""
    point = view.at(R)
    return contrast.value(point.C, point.kappa, lam)


def system(view: View, point: Point, lam: float) -> System:
    """Gradient and Hessian of F at a point."""
    G, s = contrast.slopes(point, lam), contrast.signs(point.kappa)
    S, D = -contrast.gradient(G), contrast.scale(point.C, point.kappa, lam)
    if isinstance(view, Streamed):
        times = view.product(point, G, s, lam)
        return System(S, D, lambda theta: -times(theta))
    J = -contrast.hessian(contrast.blocks(point.C, view.shared(point.R), G, s, lam))
    return System(S, D, lambda theta: J @ theta, J)


def rounds(k: int) -> list[tuple[Array, Array]]:
    """All pairs i < j in k − 1 (or k) rounds of disjoint ones: everybody meets everybody, as in a tournament."""
    size = k + k % 2
    ring, found = list(range(1, size)), []
    for _ in range(size - 1):
        seats = [0, *ring]
        met = [sorted(pair) for pair in zip(seats[: size // 2], seats[: size // 2 - 1 : -1], strict=True)]
        i, j = np.array([pair for pair in met if pair[1] < k]).reshape(-1, 2).T
        found.append((i, j))
        ring = ring[1:] + ring[:1]
    return found


def sweep(view: Fourth, R: Array, lam: float) -> tuple[Array, float]:
    """R after every pair has been turned to its maximum of F, and the largest angle turned through.

    Disjoint pairs do not act on each other in F, so those of a round are turned at once: F rises with each of them.
    """
    R, widest = R.copy(), 0.0
    for i, j in rounds(len(R)):
        theta = contrast.best_angles(view, R, i, j, lam)
        c, s, P, Q = np.cos(theta), np.sin(theta), R[:, i], R[:, j]
        R[:, i], R[:, j] = c * P + s * Q, c * Q - s * P
        widest = max(widest, float(np.abs(theta).max(initial=0.0)))
    return R, widest


def pairwise(view: Streamed, R: Array, lam: float) -> tuple[Array, float]:
    """R after one step of all pairs, each as far as it would go alone, halved until F rises; the largest angle."""
    equations = system(view, view.at(R), lam)
    theta = np.clip(-equations.S / equations.D, -NEAR, NEAR)
    R, _, share = risen_along(view, R, lam, theta, value(view, R, lam))
    return R, share * float(np.abs(theta).max(initial=0.0))


def first(view: View, R: Array, lam: float) -> tuple[Array, float]:
    """One sweep over the pairs, by the tensor or, where there is none, by all pairs at once."""
    return sweep(view, R, lam) if isinstance(view, Fourth) else pairwise(view, R, lam)


def climb(view: View, R: Array, lam: float, tol: float, limit: int, history: list[Step]) -> tuple[Array, End]:
    """(R, how it ended): where the climb from R leads in at most `limit` steps of all kinds.

    `history` gains (kind, rows, F, largest angle) of every step; F never falls but by rounding.
    """
    highest, end = value(view, R, lam), len(history) + limit

    def note(kind: str, angle: float) -> None:
        history.append((kind, view.n, highest, angle))

    for count in range(min(limit, SWEEPS if isinstance(view, Fourth) else PAIRWISE)):
        R, widest = first(view, R, lam)
        highest = max(highest, value(view, R, lam))
        note("sweep", widest)
        if widest < NEAR and count > 1:
            break
    while True:
        equations = system(view, view.at(R), lam)
        theta = equations.step()
        angle = float(np.abs(theta).max(initial=0.0))
        direction = equations.rising() if angle <= tol else None
        if angle <= tol and direction is None:
            return R, End(True, False, angle)
        if len(history) >= end:
            return R, End(False, direction is not None, angle)
        if direction is not None:  # a saddle: up on one of its two sides
            theta = LONGEST * direction
        theta = steps.limited(theta, LONGEST)
        found, highest, share = risen_along(view, R, lam, theta, highest, both=direction is not None)
        if share == 0.0 and angle < SETTLING:
            found, share = settled(view, R, lam, theta, equations)
        R = found
        note("newton" if direction is None else "escape", share * min(angle, LONGEST))
        if share == 0.0:
            return R, End(False, direction is not None, angle)


def settled(view: View, R: Array, lam: float, theta: Array, equations: System) -> tuple[Array, float]:
    """R turned by θ and 1, if that brings the gradient nearer to 0 where F itself is flat to rounding; else R and 0."""
    there = steps.rotate(R, theta)
    after = system(view, view.at(there), lam)
    falls = np.linalg.norm(after.S / after.D) < np.linalg.norm(equations.S / equations.D)
    return (there, 1.0) if falls else (R, 0.0)


def risen_along(
    view: View, R: Array, lam: float, theta: Array, before: float, both: bool = False
) -> tuple[Array, float, float]:
    """R turned by the longest of θ, θ/2, θ/4, … along which F rises, its F and the share; `both`: or by −θ."""
    share = 1.0
    slack = abs(before) * (EQUAL if isinstance(view, Fourth) else STREAMED_EQUAL)
    while share > SHORTEST:
        for sign in (1.0, -1.0) if both else (1.0,):
            there = steps.rotate(R, sign * share * theta)
            risen = value(view, there, lam)
            if risen > before + slack or (not both and risen >= before - slack):
                return there, max(risen, before), share
        share /= 2
    return R, before, 0.0
