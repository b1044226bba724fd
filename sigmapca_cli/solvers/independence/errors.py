"""Standard errors of the angles of the answer, and which pairs of components these rows identify at all.

The estimating equation of a pair is E[y_j ḡ_i] = E[y_i ḡ_j], ḡ_i the derivative of C for component i, less its mean,
because the mean of the rows is estimated too. Its errors are divided by the curvature of C: var θ = H⁻¹VH⁻¹/n (
Huber 1967), with every pair acting on every other where there are few. H is the Hessian of the sample, which does not
assume independent components. Where rows depend on their neighbours, V is the spread of the sums
over stretches of rows (`stretches`).

An answer exists for Gaussian rows of equal variance too, and its curvature is then noise. So a pair counts as
identified only if its variances differ, or if one of the two components is not Gaussian, beyond what the best rotation
of k such Gaussian components shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.independence.contrast import Contrast, Point, bell
from sigmapca_cli.solvers.independence.curvature import Curvature
from sigmapca_cli.solvers.independence.descent import WHOLE
from sigmapca_cli.solvers.independence.null import NULL_SHAPE, NULL_SPREAD, in_groups, null, of_few_rows
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.stretches import apart, apart_bound, filtered, spread_of_stretches
from sigmapca_cli.solvers.newton.jacobian import pack
from sigmapca_cli.solvers.rows.stretches import unsure

Array = np.ndarray
Scores = Callable[[Array], tuple[Array, Array]]
"""From z (m, k) to y and the centred g of the components, each (m, k)."""
Influence = Callable[[Array], Array]
"""From z (m, k) to the influence of each row on α, β and ln σ² of each component, (m, 3k)."""

ERROR_ROWS = 50_000
"""Largest number of rows of the third moments in H."""


@dataclass(frozen=True)
class Errors:
    """Errors of an answer, for every pair of components.

    angle (k, k): standard error of the angle, radians; π/2 where the pair is not identified, 0 on the diagonal.
    identified (k, k): whether variances or shapes tell the two apart, and the rows fix their axes (`unsure`). shape
    (k,): how far a component is from Gaussian, the sum of squares of E[G₁] and E[G₂] − √½ in standard errors; of rows
    without an order at most 2nJ, which has the errors of Gaussian components. spread (k, k): |ln(σ_i²/σ_j²)| in
    standard errors. apart (k, k): how far the shapes of two spectra differ, in the mean that equal ones have; 0 without
    spectra. groups: number of stretches that the errors come from; None for rows that do not depend on neighbours.
    """

    angle: Array
    identified: Array
    shape: Array
    spread: Array
    apart: Array
    groups: int | None

    @property
    def filter_error(self) -> Array:
        """(k,), radians: the root of the sum of squares over the pairs of each component."""
        return np.asarray(np.minimum(np.sqrt(np.sum(self.angle**2, axis=1)), np.pi / 2))


def errors(
    rows: Rows,
    R: Array,
    tau: float,
    *,
    ordered: bool = False,
    spectra: Array | None = None,
    pieces: Sequence[int] = (),
) -> Errors:
    """Return the standard errors of the answer R of C_τ.

    ordered: rows depend on their neighbours. spectra (bands, k, k): of the columns of the rows, if R is an answer with
    them; pieces: first rows of the stretches that they were taken from, among the rows of this rank.
    """
    point = Contrast(rows, tau, spectra).at(R)
    curvature = Curvature(point, rows.subset(ERROR_ROWS))
    pairs = len(curvature.scale)
    M, k = R / point.sigma, rows.k
    offset = rows.means(lambda z, w: (weighted_sum(derivatives(point, z), w),), M)[0]
    influence = _influence(point, rows, M)
    coupled = pairs <= WHOLE

    def scores(z: Array) -> tuple[Array, Array]:
        return z * point.sigma, derivatives(point, z) - offset

    if ordered or spectra is not None:
        y = (rows.held[:, :k].astype(np.float64, copy=False) - rows.mean) @ R
        linear = y / np.diag(point.C) if spectra is None else filtered(y, point.S, pieces)
        variance, moved, count = spread_of_stretches(rows, M, point, influence, linear, coupled)
    else:
        (variance, moved), count = _spread_of(rows, M, scores, influence, coupled), None
    if coupled:
        inverse = np.linalg.pinv(curvature.whole(), rcond=1e-9, hermitian=True)
        theta = np.sqrt(np.maximum(np.diag(inverse @ variance @ inverse), 0))
    else:
        theta = np.sqrt(variance) / curvature.scale
    with np.errstate(divide="ignore"):  # a handful of rows may have no spread at all
        statistic = np.concatenate([point.alpha, point.beta]) / np.sqrt(np.diag(moved)[: 2 * k])
    shape = statistic[:k] ** 2 + statistic[k:] ** 2
    if count is None:  # of few Gaussian rows the errors are too small where chance made the shape large
        shape = np.minimum(shape, 2 * rows.effective * point.negentropy)
    logs = moved[2 * k :, 2 * k :]
    difference = np.diag(logs)[:, None] + np.diag(logs) - 2 * logs
    logs_apart = np.abs(2 * np.log(point.sigma[:, None] / point.sigma))
    spread = logs_apart / np.sqrt(np.where(difference > 0, difference, np.inf))
    spread_bound, shape_bound = bounds_of(k, count, rows.effective)
    told = spread > spread_bound
    if tau > 0:
        loud = shape > shape_bound
        told |= loud[:, None] | loud
    different = apart(point.S, rows.n) if spectra is not None else np.zeros((k, k))
    told |= different > apart_bound(k, len(point.S))
    np.fill_diagonal(told, True)
    angle = np.zeros((k, k))
    angle[np.triu_indices(k, 1)] = theta
    angle = angle + angle.T
    told &= ~unsure(told, angle)
    angle = np.where(told, np.minimum(angle, np.pi / 2), np.pi / 2)
    return Errors(angle, told, shape, spread, different, count)


def bounds_of(k: int, count: int | None, n: float) -> tuple[float, float]:
    """Return the bounds of `spread` and `shape` for k components of n rows, with errors from `count` groups of rows."""
    wider = of_few_rows(k / n)
    spread, shape = (wider * null(k, NULL_SPREAD)) ** 2, wider**2 * null(k, NULL_SHAPE)
    return in_groups(spread, count) ** 0.5, in_groups(shape, count)


def derivatives(point: Point, z: Array) -> Array:
    """Return g_i = (z_i(1 + τE[ψz]) − τψ_i)/σ_i, (m, k): the derivative of C for y_i."""
    own = np.diag(point.weighted)
    return np.asarray((z * (1 + point.tau * own) - point.tau * point.psi(z)) / point.sigma)


def weighted_sum(values: Array, w: Array | None) -> Array:
    """Return the weighted sum over rows."""
    return np.asarray(values.sum(0) if w is None else (values * w).sum(0))


def _influence(point: Point, rows: Rows, M: Array) -> Influence:
    """Return the function that gives each row's influence, the estimated mean and variance included."""

    def moments(z: Array, w: Array | None) -> tuple[Array, ...]:
        e, q = bell(z)
        return weighted_sum(np.concatenate([(1 - q) * e, -z * e], axis=1), w), weighted_sum(
            np.concatenate([z * (1 - q) * e, -q * e], axis=1), w
        )

    slope, reach = rows.means(moments, M)

    def influence(z: Array) -> Array:
        e, q = bell(z)
        both = np.concatenate([z * e - point.alpha, e - np.sqrt(0.5) - point.beta], axis=1)
        q -= 1
        both -= np.tile(z, 2) * slope + np.tile(q, 2) * (reach / 2)
        return np.concatenate([both, q], axis=1)

    return influence


def _spread_of(
    rows: Rows, M: Array, scores: Scores, influence: Influence, coupled: bool
) -> tuple[Array, Array]:
    """Return the variance of the gradient of all pairs (or its diagonal), and that of α, β and ln σ².

    It is that of means over independent rows.
    """

    def part(z: Array, w: Array | None) -> tuple[Array, ...]:
        y, g = scores(z)
        shape = influence(z)
        if w is not None:
            y, shape = y * w, shape * w
        if not coupled:
            own = y * g
            cross = np.square(y).T @ np.square(g)
            return cross + cross.T - 2 * own.T @ own, shape.T @ shape
        each = pairs_of(y, g)
        return each.T @ each, shape.T @ shape

    variance, moved = rows.means(part, M)
    return (variance if coupled else pack(variance)) / rows.mass, moved / rows.mass


def pairs_of(y: Array, g: Array) -> Array:
    """Return y_j g_i − y_i g_j of all pairs i < j, (m, k(k−1)/2): what each row adds to the gradient."""
    i, j = np.triu_indices(y.shape[1], 1)
    return np.asarray(y[:, j] * g[:, i] - y[:, i] * g[:, j])
