"""A deterministic solver for the main loss: root finding on the rotation group (derivation in docs/solver.md).

W = P·R with P the k leading eigenvectors of the covariance and R orthogonal. The rows enter once, as Y = (x − mean)·P;
every iteration works on the (n, k) matrix Y only. The residual S is not the gradient of any function (the
loss holds its decoder and σ fixed), so nothing is minimised and no line search is made: S = 0 is solved for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.config import SCALED
from sigmapca_cli.solvers import jacobian as jac
from sigmapca_cli.solvers import steps
from sigmapca_cli.solvers.adapt import Adaptive
from sigmapca_cli.solvers.controller import ESCAPE_ANGLE, Controller
from sigmapca_cli.solvers.moments import measure
from sigmapca_cli.solvers.parallel import fitting, total
from sigmapca_cli.solvers.parallel import threads as on_threads
from sigmapca_cli.solvers.scores import Score, lookup
from sigmapca_cli.solvers.stage import Stage
from sigmapca_cli.sources.statistics import rank_of

Array = np.ndarray

LEVELS = (25_000, 100_000)
"""Rows of the first stages; the last stage takes all rows. A stage is skipped where it would save less than
half."""
STAGE_LIMIT = 60
"""Iterations that a subset of the rows is worth."""
ESCAPES = 5
"""Unstable stationary points that the solver leaves again before it gives up."""


@dataclass
class NewtonResult:
    """What the solver found; R (k, k) orthogonal, columns by decreasing σ, largest entry of each column
    positive.

    residual: max |S_ij| on all rows; relative_residual: the same over the mean of |m_j| + |c_j|, free of the size of φ;
    history: (iteration, rows used, relative residual) of every iteration; H (k, k) the pairwise curvature,
    diagonal 0, and H_error its standard error if rows are independent; m, c (k,): E[zφ(z)], E[φ′(z)]; order (k,):
    which column of the iteration became which; notes: what a user must know.
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
) -> NewtonResult:
    """Solve S(R) = 0 for the main loss on the components Y.

    Y (n, k): uncorrelated columns by decreasing variance, float32 or float64 (passes run in that type; sums
    of blocks in float64). a: a number, one per component, "auto", or inf (φ = z³, the limit). start (k, k):
    orthogonal, default the identity (the PCA solution). tol bounds the relative residual on all rows.
    Non-convergence is reported in the result, never raised. Raises InputError for unusable data or settings.
    Source: docs/solver.md.
    """
    score = lookup(nonlinearity, derivative)
    rows = checked_rows(Y, k)
    adaptive = Adaptive.of(_check_a(a, nonlinearity, derivative), rows.shape[1], nonlinearity == "logcosh")
    R = checked_start(start, rows.shape[1])
    with on_threads(threads):
        return _solve(rows, R, score, adaptive, tol, max_iter, block or fitting(rows.shape[1]))


def _solve(
    Y: Array, R: Array, score: Score, adaptive: Adaptive, tol: float, max_iter: int, block: int
) -> NewtonResult:
    history: list[tuple[int, int, float]] = []
    counts = [count for count in LEVELS if 2 * count <= len(Y)] + [len(Y)]
    control = Controller(True)
    for count in counts:
        last = count == len(Y)
        stage = Stage(Y, count, score, adaptive, block, control.pairwise)
        # a solution of a subset is only worth finding to its sampling error
        target = tol if last else max(tol, 0.3 / np.sqrt(count))
        # pairwise steps that made do on a subset will do on more rows
        control = Controller(not history or (stage.free and control.pairwise), last and len(counts) > 1)
        # many components spend cheap pairwise steps by the dozen: each of their stages has its own count
        spent = len(history) if stage.free else 0
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
    """Iterate on one stage; the best point seen, and whether it meets the tolerance."""
    best, best_value, escapes = R, np.inf, 0 if control.last_stage else ESCAPES
    chosen, renewals = 0, escapes
    while True:
        iteration = len(history)
        point = stage.at(R)
        if not control.kept and stage.adapt(R, point.sigma, iteration - chosen):
            control.reset()
            best_value = np.inf
            point = stage.at(R)
        value = point.relative
        history.append((iteration, stage.count, point.relative))
        if value < best_value:
            best, best_value = R, value
        if value <= tol and renewals > 0 and stage.adapt(R, point.sigma, 1):
            # what was chosen far from here, and then held to, is not what these components want
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
        R = steps.rotate(R, control.step(stage, point))


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
    error = error * np.sqrt(len(stage.support.Y) / stage.count)
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
    if flat := int((np.abs(H) <= 2 * error).sum()):
        notes.append(
            f"{flat} pairs of components are not identified: their curvature is zero within its error"
        )
    return notes


def _turning(turned: Array | float, order: Array) -> str:
    """Which pair went round: the residual is no gradient, so a pair may have one of one sign at every angle."""
    if not isinstance(turned, np.ndarray) or np.abs(turned).max() < np.pi:
        return ""
    k = len(order)
    angle = np.abs(jac.unpack(turned, k))
    pair = np.unravel_index(angle.argmax(), angle.shape)
    i, j = sorted(int(np.flatnonzero(order == column)[0]) + 1 for column in pair)
    return (
        f"components {i} and {j} turned through {angle.max():.1f} rad in one direction: they may have no stationary "
        "angle; try another a or another k"
    )


def in_order(R: Array, C: Array) -> tuple[Array, Array]:
    """Columns by decreasing variance, the entry of largest absolute value of each positive."""
    order = np.argsort(-np.einsum("lj,lm,mj->j", R, C, R), kind="stable")
    R = R[:, order]
    return R * np.sign(R[np.abs(R).argmax(0), np.arange(len(R))]), order


def checked_rows(Y: Array, k: int | None, solver: str = "newton") -> Array:
    """The first k columns of Y, contiguous; InputError where they are not usable as components."""
    if Y.ndim != 2 or Y.dtype not in (np.float32, np.float64):
        raise InputError(f"solver {solver} needs components as a float matrix (rows, k)")
    Y = Y[:, :k]
    n, width = Y.shape
    if n <= width:
        raise InputError(f"solver {solver} needs more rows than components: {n} rows, k={width}; lower k")
    if n * width <= 1_000_000:
        Y = Y.astype(np.float64)  # free at this size, and exact
    centre = Y[: 1 << 12].mean(0, dtype=np.float64)

    def part(rows: Array) -> tuple[Array, ...]:
        moved = rows - centre
        return moved.sum(0), np.square(moved).sum(0)

    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = (value / n for value in total(part, Y))
        std = np.sqrt(np.maximum(square - mean**2, 0))
    if not np.isfinite(std).all():
        raise InputError("the components contain NaN or infinite values; check the data")
    rank = rank_of(np.square(std))
    if rank < width:
        raise InputError(f"only {rank} of {width} components have any variance; use k={rank} or fewer")
    return np.ascontiguousarray(Y)


def _check_a(a: float | str | Array, nonlinearity: str, derivative: str) -> float | str | Array:
    if isinstance(a, str):
        if a != "auto":
            raise InputError(f"a={a} is neither a number nor auto")
        if (nonlinearity, derivative) == ("scaled_tanh", "true"):
            return a
        # elsewhere nothing is known about which a separates what
        if nonlinearity in SCALED:
            raise InputError(
                f"a=auto needs nonlinearity=scaled_tanh with derivative=true; give a number for {nonlinearity}"
            )
        return 1.0
    if not np.all(np.asarray(a, float) > 0):
        raise InputError("a must be positive")
    return a


def checked_start(start: Array | None, k: int) -> Array:
    """The orthogonal matrix to start from, the identity for None."""
    if start is None:
        return np.eye(k)
    start = np.asarray(start, np.float64)
    if start.shape != (k, k) or np.abs(start.T @ start - np.eye(k)).max() > 1e-4:
        raise InputError(f"start must be an orthogonal matrix of shape ({k}, {k})")
    U, _, Vt = np.linalg.svd(start)
    return U @ Vt
