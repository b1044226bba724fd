"""solver=independence: the rotation R that makes C_τ(R) = Σ log σ_i − τ·Σ J(z_i) smallest.

C₁ is the total correlation of the components, up to a constant: at independent sources it is smallest, whether they
differ in variance or in shape. No scale of a nonlinearity is chosen and no random numbers are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.linalg.rotations import matches, random_orthonormal
from sigmapca_cli.solvers.fourth_moments.maximum import SAME
from sigmapca_cli.solvers.independence.contrast import Contrast
from sigmapca_cli.solvers.independence.dependence import dependence
from sigmapca_cli.solvers.independence.descent import LARGEST_ANGLE, End, Step, descend
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.rows.inputs import checked_start, in_order
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import agreed

Array = np.ndarray

STARTING = (50, 2_000, 10_000)
"""Number of rows of the starts: for each component, at least, and at most."""
SUPPORTING = (400, 10_000, 25_000)
"""The same of the second stage, and of the third moments in its Hessian."""
NEAR = (2_000, 20_000, 65_536)
"""The same of the stage that follows the minimum of a given start: fewer rows have other minima."""
SHARE = 4
"""As many rows, but at most one of so many, give the third moments in the Hessian of all rows."""
FOLLOWING = 0.1
"""Largest angle of a step that follows a minimum, radians: from one start, steps of 0.2 end in other minima for each
half of the photographs."""
ROUGH = 1e-3
"""Angle still to go at which the stages before the last end, radians."""
STARTS = 2
"""Number of starts: from PCA alone 13 of 900 solutions of five planted sources were not the lowest, 12 of them for lack
of one random start."""


@dataclass
class Independence:
    """The minimum of C_τ that was found.

    Attributes
    ----------
    R : ndarray of shape (k, k)
        Orthogonal; columns by decreasing σ, the largest entry of each positive.
    sigma : ndarray of shape (k,)
        Standard deviations of the columns of Y·R.
    negentropy : ndarray of shape (k,)
        J of each component.
    tau : float
        Weight of the negentropies.
    value : float
        C_τ.
    converged : bool
        Whether the angle came below the tolerance, at a point of no negative curvature.
    angle : float
        Radians still to go: the largest entry of Newton's step.
    iterations : int
        Number of steps on subsets and on all rows.
    history : list of (int, int, float, float)
        Iteration, rows, C_τ and largest angle of every step.
    order : ndarray of int, of shape (k,)
        Which column of the descent became which.
    minima : int
        Number of different minima that the starts ended in.
    nearest : float
        Mean |cos| between this answer and the other minimum that is nearest to it; 1 if there is no other.
    """

    R: Array
    sigma: Array
    negentropy: Array
    tau: float
    value: float
    converged: bool
    angle: float
    iterations: int
    history: list[Step]
    order: Array
    minima: int = 1
    nearest: float = 1.0


def solve(
    Y: Array,
    tau: float = 1.0,
    *,
    spectra: Array | None = None,
    weights: Array | None = None,
    start: Array | None = None,
    starts: int = STARTS,
    tol: float = 1e-6,
    max_iter: int = 300,
    threads: int | None = None,
) -> Independence:
    """Find the rotation R that makes C_τ(R) = Σ log σ_i − τ·Σ J(z_i) smallest.

    Parameters
    ----------
    Y : ndarray of shape (n, k)
        Components, float32 or float64, in any unit. Rows that are white give linear ICA.
    tau : float
        Weight τ of the negentropies: 1 is the likelihood of independent sources, 0 linear PCA.
    spectra : ndarray of shape (bands, k, k), optional
        Spectral matrices of the columns of rows in time (`spectra.spectra_of`); the covariance unless given.
    weights : ndarray of shape (n,), optional
        Weights of the rows; 1 unless given.
    start : ndarray of shape (k, k), optional
        Orthogonal rotation to start from; the identity (the PCA solution) unless given.
    starts : int
        Number of starts; those after the first are fixed random rotations. They are compared on a part of the rows.
        0: the steps are small and take many rows, from `start` on, so that they end in the minimum next to it.
    tol : float
        Bound of the angle still to go, in radians.
    max_iter : int
        Steps at most.
    threads : int, optional
        Threads of the sums over rows; one for each core unless given.

    Returns
    -------
    Independence
        The rotation, and how it was found; non-convergence is reported there, never raised.

    Raises
    ------
    InputError
        If the rows or a setting cannot be used.
    """
    if not (np.isfinite(tau) and tau >= 0):
        raise InputError(f"solver.tau={tau:g}: must be a finite number ≥ 0")
    with on_threads(threads):
        rows = Rows.of(Y, weights)
        R = checked_start(start, rows.k)
        few, some, many = (rows_for(rows.k, bounds) for bounds in (STARTING, SUPPORTING, NEAR))
        begun, helping = rows.subset_or_all(few if starts else many), rows.subset_or_all(some)
        history: list[Step] = []
        minima, nearest, largest = 1, 1.0, LARGEST_ANGLE if starts else FOLLOWING
        if starts:
            R, minima, nearest = _from_starts(Contrast(begun, tau, spectra), R, starts, max_iter, history)
        stage = helping if starts else begun
        if stage is not rows:
            contrast = Contrast(stage, tau, spectra)
            R = descend(contrast, helping, R, ROUGH, max_iter, history, largest=largest, check=False).point.R
        contrast, share = Contrast(rows, tau, spectra), min(many, rows.n // SHARE)
        support = rows.subset_or_all(share) if share > some else helping
        end = descend(contrast, support, agreed(R), tol, max_iter, history, largest=largest, check=True)
        return _result(rows, end, history, minima, nearest)


def rows_for(k: int, bounds: tuple[int, int, int]) -> int:
    """Return the number of rows of a stage: so many for each component, between two bounds."""
    each, fewest, most = bounds
    return int(np.clip(each * k, fewest, most))


def _from_starts(
    contrast: Contrast, R: Array, starts: int, max_iter: int, history: list[Step]
) -> tuple[Array, int, float]:
    """Return the best rotation of several starts, how many minima they ended in, and how near the nearest other is."""
    ends = []
    for number in range(starts):
        begin = R if number == 0 else random_orthonormal(len(R), len(R), number)
        own: list[Step] = []
        ends.append(descend(contrast, contrast.rows, begin, ROUGH, max_iter, own, check=False))
        history += own if number == 0 else []
    distinct = _distinct(ends)
    best = _most_independent(contrast.rows, distinct)
    others = [float(matches(best.point.R, end.point.R).mean()) for end in distinct if end is not best]
    return best.point.R, len(distinct), max(others, default=1.0)


def _distinct(ends: list[End]) -> list[End]:
    """Return the ends that differ from those before them: the converged ones, or all if none converged."""
    seen: list[End] = []
    for end in [end for end in ends if end.converged] or ends:
        if all(matches(other.point.R, end.point.R).mean() < SAME for other in seen):
            seen.append(end)
    return seen


def _most_independent(rows: Rows, ends: list[End]) -> End:
    """Return the end of lowest C among those with few dependent pairs of components, compared with the others.

    The lowest C alone is not always best. J is an approximation: the sum and the difference of a two-valued source and
    a weak one are both nearly two-valued, and C may be lower there than at the two sources. They depend on each other.
    """
    if len(ends) == 1:
        return ends[0]
    counts = [len(dependence(rows, end.point.R).pairs()) for end in ends]
    few = [end for end, count in zip(ends, counts, strict=True) if count <= 1.5 * min(counts)]
    return min(few, key=lambda end: end.point.value)


def _result(rows: Rows, end: End, history: list[Step], minima: int, nearest: float) -> Independence:
    point = end.point
    R, order = in_order(point.R, rows.C)
    return Independence(
        R=R,
        sigma=point.sigma[order],
        negentropy=point.negentropy[order],
        tau=point.tau,
        value=point.value,
        converged=end.converged,
        angle=end.angle,
        iterations=len(history),
        history=history,
        order=order,
        minima=minima,
        nearest=nearest,
    )
