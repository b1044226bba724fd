"""Maximisation of F: first sweeps over pairs, then Newton steps with the exact Hessian; F never decreases.

It ends where the largest angle of the Newton step is small and no direction curves upwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.linalg.rotations import disjoint_pairs
from sigmapca_cli.solvers.fourth_moments import contrast
from sigmapca_cli.solvers.fourth_moments.fourth import Fourth, Point, Streamed
from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.krylov import MatrixFreeJacobian
from sigmapca_cli.system.row_shards import agreed

Array = np.ndarray
View = Fourth | Streamed
Step = tuple[str, int, float, float]

NEAR = 0.3
"""Largest angle of a sweep, radians, below which the Newton steps begin."""
SWEEPS = 20
"""Number of sweeps after which the Newton steps begin in any case."""
LONGEST = 0.5
"""Largest angle of one step, radians."""
SHORTEST = 2.0**-12
"""Fraction of a step at which the line search stops: F counts as flat along the step."""
ROUNDING = 1e-8
"""Scaled curvature that is rounding error if the cumulants are held in float64."""
STREAMED_ROUNDING = 1e-3
"""The same if products of float32 rows are summed and the eigenvalues come from an iteration."""
EQUAL, STREAMED_EQUAL = 1e-14, 1e-9
"""Relative difference of two values of F that is rounding error: with the tensor, and streamed."""
SETTLING = 0.01
"""Largest angle of the Newton step, radians, below which the gradient decides where F is flat to rounding error."""
PAIRWISE = 60
"""Number of steps of all pairs at once after which the Newton steps begin, where there is no tensor."""


@dataclass(frozen=True)
class End:
    """How a climb ended.

    converged: at a maximum; saddle: at a saddle point; neither: the step limit came first. angle: largest angle of
    the next Newton step, radians.
    """

    converged: bool
    saddle: bool
    angle: float


@dataclass(frozen=True)
class System:
    """The equations of one Newton step: J = −H at one rotation, on pairs i < j, as a matrix or only as a product.

    S (pairs,) is −gradient. As in the Newton solver a root of S is sought; at a maximum J is positive definite.
    D (pairs,) > 0 makes S/D an angle in radians.
    """

    S: Array
    D: Array
    product: Callable[[Array], Array]
    J: Array | None = None

    @property
    def matrix_free(self) -> MatrixFreeJacobian:
        """The same J, only multiplied with: its equations are solved in a Krylov space."""
        return MatrixFreeJacobian(self.product, np.sqrt(self.D))

    @functools.cached_property
    def scaled(self) -> Array:
        """D^−½JD^−½, if J is held as a matrix."""
        assert self.J is not None
        root = np.sqrt(self.D)
        return self.J / np.outer(root, root)

    @functools.cached_property
    def definite(self) -> bool:
        """Whether no direction curves upwards, that is, a Cholesky factor of J exists."""
        try:
            np.linalg.cholesky(self.scaled + ROUNDING * np.eye(len(self.D)))
        except np.linalg.LinAlgError:
            return False
        return True

    def step(self) -> Array:
        """Return the Newton step if J is positive definite, else the step with |λ| for each eigenvalue λ of J."""
        if self.J is None:
            newton, guarded = self.matrix_free.newton_and_guarded(self.S)
            rising = newton @ self.S < 0 and newton @ self.product(newton) > 0
            return newton if rising else guarded()
        root = np.sqrt(self.D)
        if self.definite:
            return (
                -np.asarray(np.linalg.solve(self.scaled + ROUNDING * np.eye(len(root)), self.S / root)) / root
            )
        if len(root) > steps.LARGEST_EIGEN:
            return self.matrix_free.guarded(self.S)
        return -np.linalg.solve(steps.positive(self.scaled), self.S / root) / root

    def rising(self) -> Array | None:
        """Return the direction of largest upward curvature, scaled to largest entry 1; None at a maximum."""
        if len(self.D) == 0 or (self.J is not None and self.definite):
            return None
        if self.J is None or len(self.D) > steps.LARGEST_EIGEN:
            return self.matrix_free.unstable(STREAMED_ROUNDING if self.J is None else ROUNDING)
        direction = np.linalg.eigh(self.scaled)[1][:, 0] / np.sqrt(self.D)
        return np.asarray(direction / direction[np.abs(direction).argmax()])


def value(view: View, R: Array, lam: float) -> float:
    """Return F at the rotation R (k, k)."""
    point = view.at(R)
    return contrast.value(point.C, point.kappa, lam)


def system(view: View, point: Point, lam: float) -> System:
    """Return the equations of the Newton step at a point: gradient and Hessian of F."""
    G, s = contrast.slopes(point, lam), contrast.signs(point.kappa)
    S, D = -contrast.gradient(G), contrast.scale(point.C, point.kappa, lam)
    if isinstance(view, Streamed):
        times = view.product(point, G, s, lam)
        return System(S, D, lambda theta: -times(theta))
    J = -contrast.hessian(contrast.blocks(point.C, view.shared(point.R), G, s, lam))
    return System(S, D, lambda theta: J @ theta, J)


def sweep(view: Fourth, R: Array, lam: float) -> tuple[Array, float]:
    """Return R after every pair has been rotated to its maximum of F, and the largest angle, radians.

    Disjoint pairs do not act on each other in F, so the pairs of a round are rotated at once and F does not decrease.
    """
    R, widest = R.copy(), 0.0
    for i, j in disjoint_pairs(len(R)):
        theta = contrast.best_angles(view, R, i, j, lam)
        c, s, P, Q = np.cos(theta), np.sin(theta), R[:, i], R[:, j]
        R[:, i], R[:, j] = c * P + s * Q, c * Q - s * P
        widest = max(widest, float(np.abs(theta).max(initial=0.0)))
    return R, widest


def pairwise(view: Streamed, R: Array, lam: float) -> tuple[Array, float]:
    """Return R after one step of all pairs at once, and the largest angle, radians.

    Each pair takes the angle of its own Newton step; all angles are halved together until F increases.
    """
    equations = system(view, view.at(R), lam)
    theta = np.clip(-equations.S / equations.D, -NEAR, NEAR)
    R, _, share = line_search(view, R, lam, theta, value(view, R, lam))
    return R, share * float(np.abs(theta).max(initial=0.0))


def sweep_or_pairwise(view: View, R: Array, lam: float) -> tuple[Array, float]:
    """Do one sweep over the pairs if there is a tensor of cumulants; else one step of all pairs at once."""
    return sweep(view, R, lam) if isinstance(view, Fourth) else pairwise(view, R, lam)


def climb(view: View, R: Array, lam: float, tol: float, limit: int, history: list[Step]) -> tuple[Array, End]:
    """Climb from R in at most `limit` steps of all kinds; return the last R and how the climb ended.

    Appends (kind, rows, F, largest angle) of every step to `history`. F never decreases by more than rounding error.
    """
    highest, end = value(view, R, lam), len(history) + limit

    def note(kind: str, angle: float) -> None:
        history.append((kind, view.n, highest, angle))

    for count in range(min(limit, SWEEPS if isinstance(view, Fourth) else PAIRWISE)):
        R, widest = sweep_or_pairwise(view, R, lam)
        R = R if isinstance(view, Fourth) else agreed(R)
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
        if direction is not None:  # at a saddle F increases along both signs of the direction
            theta = LONGEST * direction
        theta = steps.limited(theta, LONGEST)
        found, highest, share = line_search(view, R, lam, theta, highest, both=direction is not None)
        if share == 0.0 and angle < SETTLING:
            found, share = settled_by_gradient(view, R, lam, theta, equations)
        R = found if isinstance(view, Fourth) else agreed(found)
        note("newton" if direction is None else "escape", share * min(angle, LONGEST))
        if share == 0.0:
            return R, End(False, direction is not None, angle)


def settled_by_gradient(
    view: View, R: Array, lam: float, theta: Array, equations: System
) -> tuple[Array, float]:
    """Return (R rotated by θ, 1.0) if that reduces the gradient; else (R, 0.0).

    It decides where F itself is flat to rounding error.
    """
    there = steps.rotate(R, theta)
    after = system(view, view.at(there), lam)
    falls = np.linalg.norm(after.S / after.D) < np.linalg.norm(equations.S / equations.D)
    return (there, 1.0) if falls else (R, 0.0)


def line_search(
    view: View, R: Array, lam: float, theta: Array, before: float, both: bool = False
) -> tuple[Array, float, float]:
    """Return R rotated by the longest of θ, θ/2, θ/4, … for which F increases, F there, and the fraction of θ.

    `both`: −θ, −θ/2, … are tried as well, and F must increase by more than rounding error. Without an increase: R,
    the F of before, and 0.
    """
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
