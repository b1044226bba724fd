"""solver=moments: the rotation R that makes F(R) = Σ_j σ_j⁴ + λ·Σ_j |cum₄(y_j)| greatest (docs/solver.md).

The maximum of F is linear PCA for λ → 0 or Gaussian data, and linear ICA for equal variances, whether the tails are
heavy or light. No random numbers are drawn and no scale a of a nonlinearity is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sigmapca_cli.linalg.rotations import matches, random_orthonormal
from sigmapca_cli.solvers.fourth_moments import ascent, influence
from sigmapca_cli.solvers.fourth_moments.ascent import End, Step, View
from sigmapca_cli.solvers.fourth_moments.fourth import Fourth, Streamed
from sigmapca_cli.solvers.newton.solve import LEVELS
from sigmapca_cli.solvers.rows.inputs import checked_rows, checked_start, held, in_order, weighted_mean
from sigmapca_cli.solvers.rows.parallel import count, means
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import agreed, sharing

Array = np.ndarray
Climb = tuple[Array, End, list[Step]]
"""The last rotation of a climb, how it ended, and its steps."""

LAMBDA = 0.1
"""λ of F: at 0.1 the halves of image data agreed better than at 1/3 and 1, or as well (docs/solver.md)."""
LARGEST_TENSOR = 64
"""Largest k for which all fourth cumulants are held: 35 MB, half a minute for 500,000 rows."""
SAME = 0.999
"""Mean |cos| above which two ends of a climb count as the same answer."""
COUPLED = 64
"""Largest k for which the standard errors take into account that pairs act on each other."""


@dataclass
class Maximum:
    """What the climb to the maximum of F found.

    Attributes
    ----------
    R : ndarray of shape (k, k)
        Orthogonal; columns by decreasing σ, the largest entry of each positive.
    sigma : ndarray of shape (k,)
        Standard deviations of the columns of Y·R.
    kappa : ndarray of shape (k,)
        The excess kurtosis cum₄(y_j)/σ_j⁴.
    lam : float
        λ of F.
    value : float
        F in units in which the mean variance is 1.
    converged : bool
        Whether angle came below the tolerance, and at no saddle.
    saddle : bool
        Whether F rises to two sides of the answer.
    angle : float
        Radians still to go: the largest entry of Newton's step.
    iterations : int
        Number of steps.
    history : list of (str, int, float, float)
        Kind, rows, F and largest angle of every step.
    error : ndarray of shape (k, k)
        Standard error of the angle of every pair, in radians; π/2 where nothing fixes it.
    fixed : ndarray of bool, of shape (k, k)
        Whether F curves along a pair beyond the error of its curvature.
    carrying : ndarray of shape (k,)
        How many rows carry the fourth moment of each component.
    order : ndarray of int, of shape (k,)
        Which column of the climb became which.
    agreeing : int
        How many starts ended in this answer.
    notes : list of str
        What a user must know.
    """

    R: Array
    sigma: Array
    kappa: Array
    lam: float
    value: float
    converged: bool
    saddle: bool
    angle: float
    iterations: int
    history: list[Step]
    error: Array
    fixed: Array
    carrying: Array
    order: Array
    agreeing: int = 1
    notes: list[str] = field(default_factory=list)

    @property
    def filter_error(self) -> Array:
        """(k,), radians: the root of the sum of squares over the pairs of each component."""
        return np.asarray(np.sqrt(np.sum(self.error**2, axis=1)))


def maximise(
    Y: Array,
    lam: float = LAMBDA,
    *,
    start: Array | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    starts: int = 1,
    threads: int | None = None,
    tensor: int = LARGEST_TENSOR,
    weights: Array | None = None,
) -> Maximum:
    """Find the rotation R that makes F(R) = Σσ⁴ + λΣ|cum₄| greatest.

    Parameters
    ----------
    Y : ndarray of shape (n, k)
        Uncorrelated columns by decreasing variance, float32 or float64, in any unit.
    lam : float
        Weight λ of the cumulants, above 0.
    start : ndarray of shape (k, k), optional
        Orthogonal rotation to start from; the identity (the PCA solution) unless given.
    tol : float
        Bound of the angle still to go, in radians.
    max_iter : int
        Steps at most.
    starts : int
        Number of climbs; the further ones begin at random rotations, always the same ones, and the highest end is kept.
    threads : int, optional
        Threads of the products; what suits the size unless given.
    tensor : int
        Number of components up to which all fourth cumulants are held.
    weights : ndarray of shape (n,), optional
        How much each row counts, ≥ 0, up to a common factor. Columns of Y are uncorrelated with these weights.

    Returns
    -------
    Maximum
        The rotation, and how it was found; non-convergence is reported there, never raised.

    Raises
    ------
    InputError
        If the data or a setting cannot be used.

    Notes
    -----
    F is a function of R alone: linear PCA as λ → 0 or for Gaussian data, linear ICA for equal variances. The derivation
    is in docs/solver.md.
    """
    if not (np.isfinite(lam) and lam > 0):
        raise InputError(f"solver.lam={lam:g}: must be a finite number > 0")
    rows, size = centred_and_scaled(Y, weights)
    R = checked_start(start, Y.shape[1])
    history: list[Step] = []
    n = count(rows)
    with on_threads(threads):
        view, *later = views(rows, tensor, len(R))
        rough = 1.0 if not later else 100.0
        ends, best = climbs(view, R, lam, rough * tol, max_iter, starts)
        R, end, history = agreed(best)
        for view in later:
            R, end = ascent.climb(view, R, lam, tol if view.n == n else rough * tol, max_iter, history)
        R, order = in_order(R, view.C)
        result = build_result(rows, view, R, order, lam, tol, end, history, size)
    result.agreeing, others = compare_starts(ends)
    result.notes += others
    return result


def centred_and_scaled(Y: Array, weights: Array | None = None) -> tuple[Array, float]:
    """Return the rows of Y centred and divided by one scale, with the column of their weights, and that scale.

    The maxima of F do not change, and fourth powers stay in the range of a float32.
    """
    rows, k = checked_rows(Y, None, "moments"), Y.shape[1]
    rows = rows - weighted_mean(held(rows, weights), k).astype(rows.dtype)
    if sharing() is None:
        size = float(np.sqrt(np.mean(np.square(rows, dtype=np.float64))))
    else:
        _, (square,) = means(lambda some: (np.square(some, dtype=np.float64).sum(0),), rows)
        size = float(np.sqrt(np.mean(square)))
    return held((rows / size).astype(rows.dtype), weights), size


def climbs(
    view: View, R: Array, lam: float, tol: float, max_iter: int, starts: int
) -> tuple[list[Climb], Climb]:
    """Return how the climbs from R and from random rotations ended, and the one of highest F."""
    ends = []
    for number in range(starts):
        own: list[Step] = []
        begin = R if number == 0 else random_orthonormal(len(R), len(R), number)
        ends.append((*ascent.climb(view, begin, lam, tol, max_iter, own), own))
    return ends, max(ends, key=lambda found: found[2][-1][2] if found[2] else -np.inf)


def compare_starts(ends: list[Climb]) -> tuple[int, list[str]]:
    """Return how many starts ended in the answer of highest F, and a sentence on the other answers, if any."""
    if len(ends) == 1:
        return 1, []
    values = [history[-1][2] if history else -np.inf for _, _, history in ends]
    best = int(np.argmax(values))
    alike = [float(matches(ends[best][0], R).mean()) for R, _, _ in ends]
    others = [i for i, cosine in enumerate(alike) if cosine < SAME]
    if not others:
        return len(ends), []
    lower = max(1 - values[i] / values[best] for i in others)
    least = min(alike[i] for i in others)
    return len(ends) - len(others), [
        f"{len(others)} of {len(ends)} starts ended in another answer, with a lower F (by {lower:.1e} of its value at "
        f"most; mean |cos| of the filters {least:.3f} or more); the answer of highest F was kept"
    ]


def views(rows: Array, tensor: int, k: int | None = None) -> list[View]:
    """Return the stages of the climb: one tensor of all rows, or growing numbers of streamed rows.

    k: number of components, where weights of the rows are a further column.
    """
    n, k = count(rows), k or rows.shape[1]
    if k <= tensor:
        return [Fourth.of(rows, k)]
    return [Streamed.of(rows, count, k) for count in (*LEVELS, n) if 2 * count <= n or count == n]


def build_result(
    rows: Array,
    view: View,
    R: Array,
    order: Array,
    lam: float,
    tol: float,
    end: End,
    history: list[Step],
    size: float,
) -> Maximum:
    """Build the result: the answer with its standard errors and notes."""
    point = view.at(R)
    groups = influence.group_moments(rows, point)
    equations = ascent.system(view, point, lam)
    J = equations.J if len(R) <= COUPLED else None
    curvature, its_error = influence.pair_curvature(groups, point, lam)
    fixed = curvature > influence.threshold(len(R), len(groups.weight)) * its_error
    error = influence.angle_errors(groups, point, lam, J, equations.D)
    np.fill_diagonal(fixed, True)
    result = Maximum(
        R=R,
        sigma=point.sigma * size,
        kappa=point.kappa / point.sigma**4,
        lam=lam,
        value=ascent.value(view, R, lam),
        converged=end.converged,
        saddle=end.saddle,
        angle=end.angle,
        iterations=len(history),
        history=history,
        error=np.where(fixed, np.minimum(error, np.pi / 2), np.pi / 2),
        fixed=fixed,
        carrying=groups.carrying,
        order=order,
    )
    result.notes = notes(result, groups, tol, view.n)
    return result


def notes(result: Maximum, groups: influence.Groups, tol: float, n: int) -> list[str]:
    """Return the sentences for the user: no convergence, influential rows."""
    sentences = []
    if result.saddle:
        sentences.append(
            "ended at a saddle point of F, not at a maximum; start from another rotation (init=orthogonal)"
        )
    elif not result.converged:
        sentences.append(
            f"not converged: after {result.iterations} steps the next step is {result.angle:.1e} rad, above {tol:.0e}"
        )
    return sentences + influence.owners(groups, n)
