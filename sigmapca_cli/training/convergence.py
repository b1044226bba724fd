"""Has a run converged? The angle that its filters still have to go, and whether they stand at a stable point.

Definition, cost and where it can err: docs/convergence.md. The gradient alone does not tell: it is small at the saddle
where linear PCA leaves components of equal variance, and wherever little holds a pair. What tells is the gradient
against the curvature, way by way (`curvature`), which depends on no learning rate, schedule, scale or length of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.arrays import Array
from sigmapca_cli.training.curvature import Holds, holds
from sigmapca_cli.training.fields import Field, fields_of

ROWS = 65_536
"""Rows that the gradient is averaged over, evenly spaced; all rows of smaller data."""
GROUPS = 32
"""Groups of every 32nd of these rows: their spread is the error of a sum over some rows in the place of all."""
PROBED = (1024, 8192)
"""Fewest and most rows that curvatures are averaged over."""
SHARE, CHEAP = 0.05, 2e10
"""Share of the multiplications of the training that the curvatures may take, or so many (half a second)."""
BESIDE = 16
"""Directions beside the span of the filters in which they may leave it."""
FLAT = 1e-3
"""Curvature, of about 2 at most, below which nothing holds a pair even where no row is left out."""
LEVEL = 0.01
"""Rate at which chance alone calls some way unstable."""
QUARTER = np.pi / 2
MOST_NOISE = 0.05
"""Radians of sampling error that are taken off at most, for one way."""


@dataclass(frozen=True)
class Convergence:
    """How far the components (k,), numbered as they are trained, stand from a stable stationary point.

    angle: radians that each still has to go, its sampling error taken off, the unheld ways left out; strict_angle: the
    same with unheld ways, except those that are flat to every digit that counts (the axes of a linear autoencoder);
    gradient: ‖G_j‖/(2σ_j²); unstable (m, 2): ways of negative curvature, as pairs of components, or −1 and a component
    for a way out of their span; unheld (m, 2): ways whose curvature and residual these rows cannot tell from zero.
    """

    angle: np.ndarray
    strict_angle: np.ndarray
    gradient: np.ndarray
    unstable: np.ndarray
    unheld: np.ndarray

    def converged(self, tol: float, strict: bool = False) -> bool:
        """Within `tol` radians of a stable stationary point; with `strict`, along the unheld ways as well."""
        angle = self.strict_angle if strict else self.angle
        return not len(self.unstable) and bool((angle <= tol).all())

    def facts(self, order: np.ndarray) -> dict[str, Any]:
        """What a run stores, under these names; components in their final order, pairs numbered by it."""
        place = np.append(np.argsort(order), -1)
        return {
            "relative_gradient": float(self.gradient.mean()),
            "relative_gradient_per_component": self.gradient[order],
            "angle": float(self.angle.max(initial=0.0)),
            "angle_per_component": self.angle[order],
            "unstable_pairs": np.sort(place[self.unstable].reshape(-1, 2), axis=1),
            "unheld_pairs": np.sort(place[self.unheld].reshape(-1, 2), axis=1),
        }


def assess(
    method: Any, state: dict[str, Array], source: Source, *, rows: int = ROWS, work: float = 0.0
) -> Convergence:
    """The convergence of a state on its data.

    rows: at most so many enter, half of them where a gradient is autograd's. work: multiplications that training took;
    the curvatures are averaged over as many rows as a share of it allows. The larger of two layers counts for each
    component. Works on copies: a measurement leaves the moving averages of a run alone.
    """
    count = min(rows if isinstance(state["W"], np.ndarray) else rows // 2, source.n)
    groups = int(np.clip(count // 8, 2, GROUPS))
    method, source = about_the_mean(method, source)
    parts = grouped(source.n, count, groups)
    C = source.covariance()[1]
    with np.errstate(all="ignore"):
        found = [
            assess_field(field, source, parts, C, count < source.n, work)
            for field in fields_of(method, state, C, mean_size(source, parts))
        ]
    # Of all layers the larger angle of each component, and the ways of all.
    return reduce(larger_of, found)


def about_the_mean(method: Any, source: Source) -> tuple[Any, Source]:
    """Return the method and the rows as the field needs them: centred, but for losses that take the mean themselves."""
    model = getattr(method, "model", None)
    if model is None or not hasattr(model, "centring"):
        return method, source.centred()
    if model.mean == "ema":
        method = replace(method, model=replace(model, mean="batch"))
    return method, source.centred() if model.centring in ("batch", "data") else source


def grouped(n: int, count: int, groups: int) -> list[np.ndarray]:
    """Rows spread over all n, one from each of `count` stretches, dealt out to groups at random, and sorted there.

    A regular step would meet the width of an image, and a group would hold one column of it. With as many rows as there
    are, each of them is in a group: the groups' sizes differ by one.
    """
    random = np.random.default_rng(0)
    edges = np.linspace(0, n, count + 1)
    index = (edges[:-1] + random.random(count) * np.diff(edges)).astype(np.int64)
    index = np.minimum(index, n - 1) if count < n else np.arange(n)
    return [np.sort(part) for part in np.array_split(random.permutation(index), groups)]


def mean_size(source: Source, parts: list[np.ndarray]) -> float:
    """E‖x‖ over the rows of the first group."""
    return float(np.linalg.norm(source.rows(parts[0]).astype(np.float64), axis=1).mean())


def assess_field(
    field: Field, source: Source, parts: list[np.ndarray], C: np.ndarray, sampled: bool, work: float
) -> Convergence:
    """The convergence of one trained matrix."""
    A, W = field.parameter, field.directions
    k = A.shape[1]
    whole = np.stack([field.at(A, source.rows(part)[None])[0] for part in parts])
    # Groups differ in size by a row: weighed so, their plain mean is the mean over the rows.
    sizes = np.array([len(part) for part in parts], float)
    whole *= (sizes / sizes.mean())[:, None, None]
    Q = frame(W, whole, source, field.inner)
    passes = 4 * k + (0 if field.inner else max(k, Q.shape[1] - k))
    most = max(SHARE * work, CHEAP) / (passes * 3 * Q.shape[1] * k)
    each = max(1, min(len(parts[-1]), int(np.clip(most, PROBED[0], PROBED[1] // field.cost)) // len(parts)))
    near = [part[np.linspace(0, len(part) - 1, each).astype(int)] for part in parts]
    z = np.stack([source.rows(part) @ Q.astype(np.float32) for part in near])
    small = field.within(Q, Q.T @ C @ Q)
    sigma = field.deviations(C)
    if field.inner:
        B = polar(A)
        measured = B.T @ whole
        start = B.T @ A
    else:
        B = np.eye(Q.shape[1])
        measured = Q.T @ whole
        start = Q.T @ A
    found = holds(lambda M: B.T @ small.at(B @ M, z), start, sigma, measured, field.rigid)
    rest = whole - (B if field.inner else Q) @ measured
    squares = np.square(rest.mean(0)).sum(0)
    if sampled or field.draws:
        squares = squares - rest.var(0, ddof=1).sum(0) / len(rest)
    out = np.sqrt(np.maximum(squares, 0))
    norms = np.linalg.norm(A, axis=0)
    gradient = np.linalg.norm(whole.mean(0), axis=0) * norms / (2 * sigma**2)
    return verdict(found, gradient, out * norms / (2 * sigma**2), sampled or field.draws, len(parts))


def polar(A: np.ndarray) -> np.ndarray:
    """The matrix with orthonormal columns nearest to A (q, k), each column taken to unit norm first."""
    U, _, Vt = np.linalg.svd(
        A / np.maximum(np.linalg.norm(A, axis=0), np.finfo(float).tiny), full_matrices=False
    )
    return U @ Vt


def frame(W: np.ndarray, G: np.ndarray, source: Source, inner: bool) -> np.ndarray:
    """Q (p, m): orthonormal columns near the filters, then directions beside them.

    Beside them stand where the gradient points out of their span, and the leading axes of the data that are not in it.
    """
    U = polar(W)
    p, k = U.shape
    r = min(p - k, BESIDE)
    if inner or r == 0:
        return U
    mean = G.mean(0) / np.maximum(np.linalg.norm(G.mean(0), axis=0), np.finfo(float).tiny)
    axes = source.principal_axes()[1][:, : k + r]
    found = U
    for candidates in (mean, axes):
        room = r - (found.shape[1] - k) if candidates is axes else r // 2
        rest = candidates - found @ (found.T @ candidates)
        left, size, _ = np.linalg.svd(rest, full_matrices=False)
        found = np.hstack([found, left[:, : min(room, int((size > 1e-3).sum()))]])
    Q = np.linalg.qr(found)[0]
    return Q * np.sign(np.einsum("pm,pm->m", Q, found))


def verdict(found: Holds, gradient: np.ndarray, out: np.ndarray, sampled: bool, groups: int) -> Convergence:
    """What the ways to move say of each component."""
    from scipy.special import stdtrit  # scipy.stats would take half a second to import

    k, count = len(gradient), len(found.curvature)
    if not count:
        return Convergence(out * 0, out * 0, gradient, found.moves, found.moves)
    unlikely = -float(stdtrit(groups - 1, LEVEL / count))
    likely = -float(stdtrit(groups - 1, LEVEL))
    unstable = found.curvature < -np.maximum(unlikely * found.error, FLAT)
    unsure = np.abs(found.curvature) <= np.maximum(likely * found.error, FLAT)
    still = np.abs(found.residual) <= np.maximum(likely * found.residual_error, FLAT**2)
    flat = (np.abs(found.curvature) <= FLAT) & still
    unheld = unsure & still
    held = np.maximum(np.abs(found.curvature), np.finfo(float).tiny)
    # Where nothing holds a way, or a saddle is near, a small residual says nothing: the stable point is elsewhere.
    angle = np.where(found.curvature <= 0, QUARTER, np.minimum(np.abs(found.residual) / held, QUARTER))
    # Bounded, as the error of one way that little holds must not make up for what others have to go.
    noise = np.minimum(found.residual_error / held, MOST_NOISE) if sampled else 0 * angle
    least = (
        np.median(np.abs(found.curvature[found.moves[:, 0] < 0])) if (found.moves[:, 0] < 0).any() else 1.0
    )
    beyond = np.square(out / max(float(least), FLAT))
    squares = np.square(angle) - np.square(noise)
    loose, strict = (
        np.minimum(np.sqrt(np.maximum(of_components(found, squares, keep, k) + beyond, 0.0)), QUARTER)
        for keep in (~unheld, ~flat)
    )
    return Convergence(loose, strict, gradient, found.moves[unstable], found.moves[unheld])


def of_components(found: Holds, squares: np.ndarray, keep: np.ndarray, k: int) -> np.ndarray:
    """Σ over the ways of a component of the squared angle that it goes along each, (k,)."""
    total = np.zeros(k + 1)  # the last place is that of −1, the directions beside
    for side in (0, 1):
        np.add.at(total, found.moves[:, side], np.square(found.lean))
    return total[:k] + np.where(keep, squares, 0.0) @ np.square(found.share)


def larger_of(one: Convergence, other: Convergence) -> Convergence:
    """The larger angle of each component, and the ways of both."""
    return Convergence(
        np.maximum(one.angle, other.angle),
        np.maximum(one.strict_angle, other.strict_angle),
        np.maximum(one.gradient, other.gradient),
        np.concatenate([one.unstable, other.unstable]),
        np.concatenate([one.unheld, other.unheld]),
    )
