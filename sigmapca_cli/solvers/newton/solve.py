"""A deterministic solver for the main loss: root finding on the rotation group (derivation in docs/solver.md).

W = P·R with P the k leading eigenvectors of the covariance and R orthogonal. The rows enter once, as Y = (x − mean)·P;
every iteration works on the (n, k) matrix Y only. The residual S is not the gradient of any function (the
loss holds its decoder and σ fixed), so nothing is minimised and no line search is made: S = 0 is solved for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.controller import ESCAPE_ANGLE, Controller
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import Score, lookup
from sigmapca_cli.solvers.newton.stage import Adaptive, Stage
from sigmapca_cli.solvers.rows.inputs import checked_a, checked_rows, checked_start, held, in_order
from sigmapca_cli.solvers.rows.parallel import count as count_rows
from sigmapca_cli.solvers.rows.parallel import rows_per_block
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.system.row_shards import agreed

Array = np.ndarray

LEVELS = (25_000, 100_000)
"""Numbers of rows of the first stages; the last stage takes all rows. A stage that has more than half of all rows is
skipped."""
STAGE_LIMIT = 60
"""Largest number of iterations on a subset of the rows."""
ESCAPES = 5
"""Number of unstable stationary points that the solver leaves before it gives up."""


@dataclass
class NewtonResult:
    """What the Newton solver found.

    Attributes
    ----------
    R : ndarray of shape (k, k)
        Orthogonal; columns by decreasing σ, the largest entry of each positive.
    sigma : ndarray of shape (k,)
        Standard deviations of the columns of Y·R.
    a : ndarray of shape (k,)
        Scale of h of each component.
    signs : ndarray of shape (k,)
        Sign of the score of each, for linear ICA.
    converged : bool
        Whether relative_residual came below the tolerance on all rows.
    iterations : int
        How many were made.
    residual : float
        The largest |S_ij| on all rows.
    relative_residual : float
        The same over the mean of |m_j| + |c_j|, free of the size of φ.
    history : list of (int, int, float)
        Iteration, rows used and relative residual of every iteration.
    H : ndarray of shape (k, k)
        Curvature of every pair; 0 on the diagonal.
    H_error : ndarray of shape (k, k)
        Its standard error, if rows are independent.
    m : ndarray of shape (k,)
        The moments E[zφ(z)].
    c : ndarray of shape (k,)
        The moments E[φ′(z)].
    order : ndarray of int, of shape (k,)
        Which column of the iteration became which.
    notes : list of str
        What a user must know.
    """

    R: Array
    sigma: Array
    a: Array
    signs: Array
    converged: bool
    iterations: int
    residual: float
    relative_residual: float
    history: list[tuple[int, int, float]]
    H: Array
    H_error: Array
    m: Array
    c: Array
    order: Array
    notes: list[str] = field(default_factory=list)

    @property
    def loose(self) -> Array:
        """The pairs whose curvature is zero within its error, (k, k); they are not identified."""
        return np.abs(self.H) <= 2 * self.H_error


def solve(
    Y: Array,
    k: int | None = None,
    a: float | str | Array = "auto",
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    start: Array | None = None,
    tol: float = 1e-5,
    max_iter: int = 200,
    threads: int | None = None,
    block: int | None = None,
    weights: Array | None = None,
) -> NewtonResult:
    """Find the rotation R with S(R) = 0, where the main loss is stationary.

    Parameters
    ----------
    Y : ndarray of shape (n, k)
        Uncorrelated columns by decreasing variance, float32 or float64. Passes run in that type, sums in float64.
    k : int, optional
        How many of the columns; all unless given.
    a : float, ndarray of shape (k,) or "auto"
        Scale of h; inf is the limit φ = z³.
    nonlinearity : str
        Name of h, which has a score φ.
    derivative : {"true", "one"}
        Whether h′ is itself or 1.
    start : ndarray of shape (k, k), optional
        Orthogonal rotation to start from; the identity (the PCA solution) unless given.
    tol : float
        Bound of the relative residual on all rows.
    max_iter : int
        Iterations at most.
    threads : int, optional
        Threads of the products; what suits the size unless given.
    block : int, optional
        Rows at a time; what fits the cache unless given.
    weights : ndarray of shape (n,), optional
        How much each row counts, ≥ 0, up to a common factor. Columns of Y are uncorrelated with these weights.

    Returns
    -------
    NewtonResult
        The rotation, and how it was found; non-convergence is reported there, never raised.

    Raises
    ------
    InputError
        If the data or a setting cannot be used.

    Notes
    -----
    With y = YR, z = y/σ and φ = (z − h)h′, the residual is S_ij = N_ij/σ_i² − N_ji/σ_j², N_ij = E[y_i σ_j φ(z_j)].
    docs/solver.md derives it.

    References
    ----------
    F. Kanavati, L. Katsnith, M. Tsuneki (2024). σ-PCA: a building block for neural learning of identifiable linear
    transformations. TMLR.
    """
    score = lookup(nonlinearity, derivative)
    rows = checked_rows(Y, k)
    adaptive = Adaptive.of(checked_a(a, nonlinearity, derivative), rows.shape[1], nonlinearity == "logcosh")
    R, block = checked_start(start, rows.shape[1]), block or rows_per_block(rows.shape[1])
    with on_threads(threads):
        return _solve(held(rows, weights), R, score, adaptive, tol, max_iter, block)


def _solve(
    Y: Array, R: Array, score: Score, adaptive: Adaptive, tol: float, max_iter: int, block: int
) -> NewtonResult:
    history: list[tuple[int, int, float]] = []
    n = count_rows(Y)
    counts = [count for count in LEVELS if 2 * count <= n] + [n]
    control = Controller(True)
    for count in counts:
        last = count == n
        stage = Stage(Y, count, score, adaptive, block, control.pairwise)
        # solving a subset more accurately than its sampling error does not pay
        target = tol if last else max(tol, 0.3 / np.sqrt(count))
        # if pairwise steps were enough on a subset, they are enough on more rows
        control = Controller(
            not history or (stage.matrix_free and control.pairwise), last and len(counts) > 1
        )
        # with many components a stage takes dozens of cheap pairwise steps: each stage has its own count
        spent = len(history) if stage.matrix_free else 0
        limit = max_iter if last else min(spent + STAGE_LIMIT, max_iter // 2)
        R, converged = _run(stage, R, target, limit, history, control)
    result = _result(stage, R, converged, tol, history)
    if not converged and (note := _turning(control.turned, result.order)):
        result.notes.append(note)
    return result


def _run(
    stage: Stage,
    R: Array,
    tol: float,
    max_iter: int,
    history: list[tuple[int, int, float]],
    control: Controller,
) -> tuple[Array, bool]:
    """Iterate on one stage; return the best rotation seen, and whether its residual meets the tolerance."""
    best, best_value, escapes = R, np.inf, 0 if control.last_stage else ESCAPES
    chosen, renewals = 0, escapes
    while True:
        iteration = len(history)
        point = stage.at(R)
        if not control.has_kept_jacobian and stage.remeasure(R, point.sigma, iteration - chosen):
            control.reset()
            best_value = np.inf
            point = stage.at(R)
        value = point.relative
        history.append((iteration, stage.count, point.relative))
        if value < best_value:
            best, best_value = R, value
        if value <= tol and renewals > 0 and stage.remeasure(R, point.sigma, 1):
            # a, or the signs, were chosen far from this point and no longer fit these components
            renewals, chosen, best_value = renewals - 1, iteration, np.inf
            control.restart()
            continue
        if value <= tol and escapes > 0 and (direction := stage.unstable(point)) is not None:
            escapes, best_value = escapes - 1, np.inf
            R = steps.rotate(R, ESCAPE_ANGLE * direction)
            control.reset()
            continue
        if value <= tol or iteration + 1 >= max_iter or not np.isfinite(value):
            return best, best_value <= tol
        R = agreed(steps.rotate(R, control.step(stage, point)))


def _result(
    stage: Stage, R: Array, converged: bool, tol: float, history: list[tuple[int, int, float]]
) -> NewtonResult:
    R, order = in_order(R, stage.rows.C)
    adaptive = stage.adaptive
    adaptive.a, adaptive.signs = adaptive.a[order], adaptive.signs[order]
    point = stage.at(R)
    error = measure(
        stage.support.Y, R / point.sigma, stage.score, adaptive.a, error=True, block=stage.block
    ).error
    assert error is not None
    error = error * np.sqrt(stage.support.n / stage.count)
    H = point.H - np.diag(np.diag(point.H))
    H_error = np.sqrt(error**2 + error[:, None] ** 2)
    result = NewtonResult(
        R=R,
        sigma=point.sigma,
        a=adaptive.a,
        signs=adaptive.signs,
        converged=converged,
        iterations=len(history),
        residual=point.absolute,
        relative_residual=point.relative,
        history=history,
        H=H,
        H_error=H_error,
        m=point.moments.m,
        c=point.moments.c,
        order=order,
    )
    result.notes = _notes(result, tol)
    return result


def _notes(result: NewtonResult, tol: float) -> list[str]:
    notes = []
    if not result.converged:
        notes.append(
            f"not converged: residual {result.residual:.1e} (relative {result.relative_residual:.1e}) after"
            f" {result.iterations} iterations, above {tol:.0e}"
        )
    H, error = jac.pack(result.H), jac.pack(result.H_error)
    if negative := int((-2 * error > H).sum()):
        notes.append(f"{negative} pairs of components have negative curvature: this a cannot separate them")
    return notes


def _turning(turned: Array | float, order: Array) -> str:
    """Return a sentence on the pair that rotated by more than π in one direction; "" if there is none.

    The residual is no gradient, so that the residual of a pair may have the same sign at every angle.
    """
    if not isinstance(turned, np.ndarray) or np.abs(turned).max() < np.pi:
        return ""
    k = len(order)
    angle = np.abs(jac.unpack(turned, k))
    pair = np.unravel_index(angle.argmax(), angle.shape)
    i, j = sorted(int(np.flatnonzero(order == column)[0]) + 1 for column in pair)
    return (
        f"components {i} and {j} rotated by {angle.max():.1f} rad in one direction: they may have no stationary "
        "angle; try another a or another k"
    )
