"""The residual S and the curvature H of every pair of components, and the influence of each group of rows on them.

For components y with standard deviations σ and correlations ρ, z = (y − mean)/σ, φ(z) = (z − h(z))·h′(z):

    S_ij = t A_ij − A_ji/t,                       t = σ_j/σ_i,  A_ij = E[z_i φ(z_j)]
    H_ij = dS_ij/dθ_ij = t² m_j + m_i/t² − D_ij − D_ji + ρ_ij K_ij,     m_j = A_jj,  D_ij = E[z_i² φ′(z_j)]
    K_ij = G_ij − (2t² + 1) A_ij + G_ji − (1 + 2/t²) A_ji,              G_ij = E[z_i z_j φ′(z_j)]

where y_i gains θ_ij y_j and y_j loses θ_ij y_i. For independent components D_ij = E[φ′(z_j)] and ρ = 0, as in the
paper. The equations here are exact for dependent components too, such as the outputs of image filters, whose energies
vary together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.subsample import by_weight
from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.solvers.rows.inputs import times
from sigmapca_cli.solvers.rows.stretches import GROUPS, error_of, widened_means

STEP = 0.05
"""Half width of the central difference that gives φ″; it smooths the step of hard tanh in φ′."""
JACOBIAN_ROWS = 25_000
"""Largest number of rows kept for the full Jacobian."""


class Blocks:
    """Float64 blocks of an array or of a re-iterable; may be iterated several times.

    weights (n, 1): of the rows of an array, of mean 1; None if all are 1.
    """

    def __init__(self, Y: Any, size: int, weights: Array | None = None) -> None:
        self.Y, self.size, self.weights = Y, size, weights

    def __iter__(self) -> Iterator[Array]:
        if isinstance(self.Y, np.ndarray):
            for start in range(0, len(self.Y), self.size):
                yield np.asarray(self.Y[start : start + self.size], dtype=np.float64)
        else:
            for rows in self.Y:
                yield np.atleast_2d(np.asarray(rows, dtype=np.float64))

    def weights_of(self, start: int, y: Array) -> Array | None:
        """Return the weights (m, 1) of a block y (m, k) that begins at row `start`; None if all are 1."""
        return None if self.weights is None else self.weights[start : start + len(y)]

    def location(self) -> tuple[int, Array, Array]:
        """Return n, mean (k,) and biased standard deviation (k,), from one pass."""
        n, first, second, centre = 0, 0.0, 0.0, None
        for y in self:
            centre = y.mean(axis=0) if centre is None else centre
            d, w = y - centre, self.weights_of(n, y)
            first, second = first + times(d, w).sum(axis=0), second + times(d * d, w).sum(axis=0)
            n += len(y)
        if centre is None:
            raise ValueError("no rows")
        shift = first / n
        return n, centre + shift, np.sqrt(np.maximum(second / n - shift**2, 0.0))


@dataclass
class PairMoments:
    """Moments of z, by group (with a leading dimension of groups) or over all rows.

    By group, z, z2 (groups, k): means of z and z²; A, D, G, C (groups, k, k): means of z_iφ_j, z_i²φ′_j, z_iz_jφ′_j,
    z_iz_j; weight (groups,): fraction of the rows. Over all rows, phi (k,): E φ; zd, z2d2, z2zd2 (k, k): E z_iφ′_j,
    E z_i²φ″_j, E z_i²z_jφ″_j, the derivatives of the moments with respect to location and scale of z; fourth (k,):
    E z⁴. rows (≤ JACOBIAN_ROWS, k): z of rows with a constant stride, or drawn by their weights.
    """

    n: int
    weight: Array
    z: Array
    z2: Array
    A: Array
    D: Array
    G: Array
    C: Array
    phi: Array
    zd: Array
    z2d2: Array
    z2zd2: Array
    fourth: Array
    rows: Array

    def over_all(self, grouped: Array) -> Array:
        """Return the mean over all rows of a moment that is held by group."""
        return np.tensordot(self.weight, grouped, axes=1)

    def in_time(self) -> PairMoments:
        """Return the moments of rows in time: of groups that are joined until they hardly depend on each other."""
        means = {name: getattr(self, name) for name in ("z", "z2", "A", "D", "G", "C")}
        return replace(self, **widened_means(means, self.weight, ("z2", "A", "D")))


def accumulate(blocks: Blocks, n: int, mean: Array, sigma: Array, score: Any, a: Array) -> PairMoments:
    """Return all moments from one pass; score maps (z, a) to (φ, φ′), each (m, k)."""
    k = len(sigma)
    groups = int(np.clip(n // 4, 2, GROUPS))
    edges = np.floor(np.arange(groups + 1) * (n / groups)).astype(int)
    edges[-1] = n  # 50 × (201 / 50) is less than 201
    # One product per group, (z, z²)ᵀ(φ, φ′, zφ′, z, 1), holds all of its moments.
    products, mass = np.zeros((groups, 2 * k, 4 * k + 1)), np.diff(edges).astype(np.float64)
    overall: dict[str, Any] = {}
    kept, start = [], 0
    sample = (
        np.arange(0, n, max(-(-n // JACOBIAN_ROWS), 1))
        if blocks.weights is None
        else by_weight(blocks.weights, JACOBIAN_ROWS)
    )
    if blocks.weights is not None:
        mass = np.add.reduceat(blocks.weights[:, 0], edges[:-1])
    for y in blocks:
        z = (y - mean) / np.where(sigma > 0, sigma, 1.0)
        phi, dphi, d2phi = _scores(z, score, a)
        z2, w = z * z, blocks.weights_of(start, z)
        left, right = np.hstack([z, z2]), np.hstack([phi, dphi, z * dphi, z, np.ones((len(z), 1))])
        for group, part in _groups(edges, start, len(z)):
            products[group] += left[part].T @ times(right[part], None if w is None else w[part])
        phi, dphi, d2phi = times(phi, w), times(dphi, w), times(d2phi, w)
        sums = {"phi": phi.sum(0), "zd": z.T @ dphi, "z2d2": z2.T @ d2phi, "z2zd2": z2.T @ (z * d2phi)}
        sums["fourth"] = times(z2 * z2, w).sum(0)
        overall = {name: overall.get(name, 0.0) + value for name, value in sums.items()}
        kept.append(z[sample[slice(*np.searchsorted(sample, (start, start + len(z))))] - start])
        start += len(z)
    products /= np.where(mass > 0, mass, 1.0)[:, None, None]
    first, second = products[:, :k], products[:, k:]
    return PairMoments(
        n=n,
        weight=mass / n,
        z=first[:, :, 4 * k],
        z2=second[:, :, 4 * k],
        A=first[:, :, :k],
        D=second[:, :, k : 2 * k],
        G=first[:, :, 2 * k : 3 * k],
        C=first[:, :, 3 * k : 4 * k],
        rows=np.concatenate(kept),
        **{name: value / n for name, value in overall.items()},
    )


def _scores(z: Array, score: Any, a: Array) -> tuple[Array, Array, Array]:
    """Return φ, φ′, φ″ at z (m, k)."""
    phi, dphi = score(z, a)
    return phi, dphi, (score(z + STEP, a)[1] - score(z - STEP, a)[1]) / (2 * STEP)


def _groups(edges: NDArray[np.intp], start: int, count: int) -> Iterator[tuple[int, slice]]:
    """Yield (group, its rows within the block) for a block of `count` rows that begins at row `start`."""
    inside = edges[(edges > start) & (edges < start + count)]
    cuts = np.concatenate([[start], inside, [start + count]])
    first = int(np.searchsorted(edges, start, "right")) - 1
    for i in range(len(cuts) - 1):
        yield first + i, slice(int(cuts[i]) - start, int(cuts[i + 1]) - start)


@dataclass
class PairStatistics:
    """S, H (k, k) and the influence of each group on them, (groups, k, k), and on log σ, (groups, k).

    shape (k, k): the part of H that does not come from different variances; ratio (k, k): σ_j²/σ_i².
    """

    S: Array
    H: Array
    shape: Array
    ratio: Array
    S_influence: Array
    H_influence: Array
    shape_influence: Array
    log_sigma_influence: Array
    weight: Array

    def error(self, influence: NDArray[Any]) -> Array:
        """Return the standard error of a statistic from the influence of each group on it."""
        return error_of(self.weight, influence)


def statistics(moments: PairMoments, sigma: Array) -> PairStatistics:
    """Return the pair statistics and the linear influence of each group on them, through location and scale too."""
    A, D, G, C = (moments.over_all(x) for x in (moments.A, moments.D, moments.G, moments.C))
    a_, d_, g_, c_ = moments.A - A, moments.D - D, moments.G - G, moments.C - C
    m, k = np.diag(A), len(sigma)
    s, z = (moments.z2 - 1) / 2, moments.z
    si, sj, zi, zj = s[:, :, None], s[:, None, :], z[:, :, None], z[:, None, :]
    safe = np.where(sigma > 0, sigma, 1.0)
    t = safe / safe[:, None]
    t2 = t**2
    # z changes with the location (z) and the log scale (s) of both components.
    a_ = a_ - A * si - G * sj - moments.phi * zi - moments.zd * zj
    d_ = d_ - 2 * D * si - moments.z2zd2 * sj - 2 * moments.zd * zi - moments.z2d2 * zj
    rho, r_ = C * (1 - np.eye(k)), c_ - C * (si + sj)
    K = _symmetric(G) - (2 * t2 + 1) * A - (1 + 2 / t2) * A.T
    K_ = _symmetric(g_) - (2 * t2 + 1) * a_ - (1 + 2 / t2) * _t(a_)
    m_, ds = np.einsum("gjj->gj", a_), sj - si
    kappa = m * t2 - m[:, None] / t2
    S = t * A - A.T / t
    shape = m + m[:, None] - _symmetric(D) + rho * K
    common = -_symmetric(d_) + r_ * K + rho * (K_ + 4 * (A.T / t2 - A * t2) * ds)
    return PairStatistics(
        S=S,
        H=shape + m * (t2 - 1) + m[:, None] * (1 / t2 - 1),
        shape=shape,
        ratio=t2,
        S_influence=t * a_ - _t(a_) / t + (t * A + A.T / t) * ds,
        H_influence=t2 * m_[:, None, :] + m_[:, :, None] / t2 + 2 * kappa * ds + common,
        shape_influence=m_[:, None, :] + m_[:, :, None] + common,
        log_sigma_influence=s,
        weight=moments.weight,
    )


def _t(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _symmetric(x: Array) -> Array:
    return x + _t(x)
