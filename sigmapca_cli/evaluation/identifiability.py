"""Which components to trust: the curvature of every pair, its standard error, and what that says in plain
words.

For two components i, j of the main loss (SPEC, the Newton solver), z standardised, φ(z) = (z − h(z))·h′(z):

    H_ij = m_j r_ij + m_i / r_ij − c_i − c_j,   r_ij = σ_j²/σ_i²,   m_j = E[z_j φ(z_j)],   c_j = E[φ′(z_j)].

It is positive where the pair is identified, by different variances or by its shape (m > c), zero for a
Gaussian pair of equal variance (Stein's lemma: m = c), whose axes are arbitrary, and negative where this
nonlinearity turns the pair away from its axes. Standard errors are those of independent rows, from the
influence of each row on H_ij through the means, variances and moments; rows that overlap, such as
neighbouring patches, make them lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.evaluation.metrics import Array

IDENTIFIED, ARBITRARY, REPELLED = "identified", "arbitrary", "repelled"
LEVEL = 0.05


@dataclass(frozen=True)
class Certificate:
    """Everything about the pairs of k components; matrices are symmetric (k, k) with nan on their diagonal.

    curvature H; error, its standard error; score, H less its sampling bias / error; shape, the part of H that
    non-Gaussianity gives, and its standard error; variance_score: the difference of the two log σ over its
    standard error; angle: the standard error, in radians, of the angle between the two axes (inf where
    nothing fixes it); verdict: IDENTIFIED, ARBITRARY or REPELLED. Per component (k,): weakest, the partner
    with the smallest score; kurtosis; sigma; m, c. `threshold` is the score below which a pair counts as
    arbitrary, at the error rate `level`; n counts the rows.
    """

    curvature: Array
    error: Array
    score: Array
    shape: Array
    shape_error: Array
    variance_score: Array
    angle: Array
    verdict: NDArray[Any]
    weakest: NDArray[np.intp]
    kurtosis: Array
    sigma: Array
    m: Array
    c: Array
    n: int
    threshold: float
    level: float

    @property
    def identified(self) -> NDArray[np.bool_]:
        """(k,): whether every pair of the component is identified."""
        other = ~np.eye(len(self.sigma), dtype=bool)
        return np.array([(self.verdict[i][other[i]] == IDENTIFIED).all() for i in range(len(self.sigma))])

    @property
    def expected_cosine(self) -> Array:
        """(k,): the |cos| of an axis with its large-sample limit that the angles predict, cos √(Σ_j angle²).

        Rotation within the k components only; at most π/2 a pair, so that an arbitrary axis gives 0.
        """
        angles = np.where(np.isfinite(self.angle), np.minimum(self.angle, np.pi / 2), np.pi / 2)
        np.fill_diagonal(angles, 0.0)
        return np.cos(np.minimum(np.sqrt(np.sum(angles**2, axis=1)), np.pi / 2))


def certify(
    Y: ArrayLike | Iterable[ArrayLike],
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    a: float | ArrayLike = 4.0,
    level: float = LEVEL,
    fitted: bool = True,
    block: int = 8192,
) -> Certificate:
    """The certificate of components Y, an (n, k) array or a re-iterable of (m, k) blocks, read twice.

    a is one number or one a component. A Gaussian pair of equal variance is called arbitrary with probability
    at least 1 − level. `fitted` says that the axes were found by nonlinear PCA on these rows: it stops where
    H > 0, which makes the score of a Gaussian pair Rayleigh rather than normal distributed, so the threshold
    is √(−2 ln level), 2.45, in place of 1.64. Give fitted=False for rows that were held out, or for axes of
    linear PCA. InputError for a nonlinearity without a score φ.
    """
    from scipy.stats import norm

    from sigmapca_cli.solvers.scores import lookup

    blocks = _Blocks(Y, block)
    mean, sigma = _location(blocks)
    basis = _accumulate(blocks, mean, sigma, lookup(nonlinearity, derivative), a)
    threshold = float(np.sqrt(-2 * np.log(level)) if fitted else norm.isf(level))
    return _certificate(basis, sigma, threshold, level)


class _Blocks:
    """Float64 blocks of an array or of an iterable, as often as they are asked for."""

    def __init__(self, Y: Any, size: int) -> None:
        self.Y, self.size = Y, size

    def __iter__(self):
        if isinstance(self.Y, np.ndarray):
            for start in range(0, len(self.Y), self.size):
                yield np.asarray(self.Y[start : start + self.size], dtype=np.float64)
        else:
            for rows in self.Y:
                yield np.atleast_2d(np.asarray(rows, dtype=np.float64))


def _location(blocks: _Blocks) -> tuple[Array, Array]:
    n, first, second, centre = 0, 0.0, 0.0, None
    for y in blocks:
        centre = y.mean(axis=0) if centre is None else centre
        d = y - centre
        n, first, second = n + len(y), first + d.sum(axis=0), second + (d * d).sum(axis=0)
    if centre is None:
        raise ValueError("no rows")
    shift = first / n
    return centre + shift, np.sqrt(np.maximum(second / n - shift**2, 0.0))


@dataclass
class _Basis:
    """Moments of the per-row functions of which every influence is a linear combination.

    mean, second: of f = (zφ, z², z, φ′) for all components, (4k,) and (4k, 4k). m, c, and the moments that
    the influence of the location and the scale brings in, each (k,). cross: variance of z_iφ(z_j) − …, see
    `_angles`.
    """

    n: int
    mean: Array
    second: Array
    phi: Array
    z_dphi: Array
    z2_dphi: Array
    d2phi: Array
    z_d2phi: Array
    fourth: Array
    z2phi2: Array
    z2phi: Array
    zphi_zphi: Array


#: Half width of the central difference that gives φ″; hard tanh has a step in φ′, which this smooths.
STEP = 0.05


def _accumulate(blocks: _Blocks, mean: Array, sigma: Array, score: Any, a: float | ArrayLike) -> _Basis:
    import torch

    scale = np.where(sigma > 0, sigma, 1.0)
    at = torch.from_numpy(np.broadcast_to(np.asarray(a, dtype=np.float64), sigma.shape).copy())
    total: dict[str, Any] = {}
    n = 0
    for y in blocks:
        z = (y - mean) / scale
        zt = torch.from_numpy(np.ascontiguousarray(z))
        phi, dphi = (t.numpy() for t in score(zt, at))
        d2phi = (score(zt + STEP, at)[1] - score(zt - STEP, at)[1]).numpy() / (2 * STEP)
        z2, zphi = z * z, z * phi
        f = np.concatenate([zphi, z2, z, dphi], axis=1)
        each = {"mean": f, "phi": phi, "z_dphi": z * dphi, "z2_dphi": z2 * dphi, "d2phi": d2phi,
                "z_d2phi": z * d2phi, "fourth": z2 * z2}  # fmt: skip
        pairs = {
            "second": f.T @ f,
            "z2phi2": z2.T @ (phi * phi),
            "z2phi": z2.T @ phi,
            "zphi_zphi": zphi.T @ zphi,
        }
        sums = {name: value.sum(axis=0) for name, value in each.items()} | pairs
        total = {name: total.get(name, 0.0) + value for name, value in sums.items()}
        n += len(z)
    return _Basis(n, **{name: value / n for name, value in total.items()})


def _certificate(basis: _Basis, sigma: Array, threshold: float, level: float) -> Certificate:
    k = len(sigma)
    m, c = basis.mean[:k], basis.mean[3 * k :]
    safe = np.where(sigma > 0, sigma, np.inf)
    r = np.where(np.outer(sigma > 0, sigma > 0), np.outer(1 / safe**2, sigma**2), 1.0)
    H = m * r + m[:, None] / r - c[:, None] - c
    shape = (m - c)[:, None] + (m - c)
    error, shape_error, variance_error = _errors(basis, m, r)
    # r and 1/r of a sample exceed the true ones on average: else equal variances would look unequal.
    bias = 2 * variance_error**2 * (m * r + m[:, None] / r)
    score = _ratio(H - bias, error)
    log_ratio = np.log(np.where(sigma > 0, sigma, 1.0))
    variance_score = _ratio(np.abs(log_ratio[:, None] - log_ratio), variance_error)
    verdict = np.where(score > threshold, IDENTIFIED, np.where(score < -threshold, REPELLED, ARBITRARY))
    for matrix in (H, error, score, shape, shape_error, variance_score):
        np.fill_diagonal(matrix, np.nan)
    # The curvature of a pair that is not identified may be anything near 0: nothing fixes its angle.
    angle = np.where(verdict == IDENTIFIED, _angles(basis, m, r, H), np.inf)
    np.fill_diagonal(angle, np.nan)
    weakest = np.array([np.argmin(np.where(np.isnan(row), np.inf, row)) for row in score], dtype=np.intp)
    return Certificate(
        H, error, score, shape, shape_error, variance_score, angle, verdict, weakest,
        basis.fourth - 3, sigma, m, c, basis.n, threshold, level,
    )  # fmt: skip


def _errors(basis: _Basis, m: Array, r: Array) -> tuple[Array, Array, Array]:
    """Standard errors of H, of its shape part, and of log σ_i − log σ_j, each (k, k).

    The influence of a row on H_ij is r A_j + A_i/r − C_i − C_j + 2κ(s_j − s_i), κ = m_j r − m_i/r, with A, C,
    s the influences on m, c and log σ; A and C contain the row's own effect on the mean and the variance of
    z.
    """
    G = _influence_covariance(basis, m)
    k = len(m)
    A, C, s = (slice(i * k, (i + 1) * k) for i in range(3))
    kappa2 = 2 * (m * r - m[:, None] / r)
    one, zero = np.ones_like(r), np.zeros_like(r)
    error = _quadratic(G, (A, C, s), (1 / r, -one, -kappa2), (r, -one, kappa2))
    shape_error = _quadratic(G, (A, C, s), (one, -one, zero), (one, -one, zero))
    variance_error = _quadratic(G, (A, C, s), (zero, zero, -one), (zero, zero, one))
    root_n = np.sqrt(basis.n)
    return error / root_n, shape_error / root_n, variance_error / root_n


def _influence_covariance(basis: _Basis, m: Array) -> Array:
    """Covariance (3k, 3k) of the influences (A, C, s), as linear combinations of f = (zφ, z², z, φ′)."""
    k = len(m)
    F = basis.second - np.outer(basis.mean, basis.mean)
    D, Z = np.diag, np.zeros((k, k))
    on_log_sigma_m = m + basis.z2_dphi
    T = np.block([
        [np.eye(k), -D(on_log_sigma_m) / 2, -D(basis.phi + basis.z_dphi), Z],
        [Z, -D(basis.z_d2phi) / 2, -D(basis.d2phi), np.eye(k)],
        [Z, np.eye(k) / 2, Z, Z],
    ])  # fmt: skip
    return T @ F @ T.T


def _quadratic(G: Array, parts: tuple, left: tuple, right: tuple) -> Array:
    """√Var(Σ_u left_u·I_u(i) + right_u·I_u(j)) for every pair, I_u the u-th kind of influence."""
    total = np.zeros_like(left[0])
    for u, pu in enumerate(parts):
        for v, pv in enumerate(parts):
            g = G[pu, pv]
            d = np.diag(g)
            total += left[u] * left[v] * d[:, None] + right[u] * right[v] * d
            total += left[u] * right[v] * g + right[u] * left[v] * g.T
    return np.sqrt(np.maximum(total, 0.0))


def _angles(basis: _Basis, m: Array, r: Array, H: Array) -> Array:
    """Standard error of the angle of each pair: that of S_ij over |H_ij|, S_ij = ρ E[z_iφ_j] − E[z_jφ_i]/ρ,
    ρ² = r.

    φ is centred, as a row moves the mean of the component it multiplies; other influences vanish when the
    components are independent.
    """
    f = basis.phi
    own = basis.z2phi2 - 2 * basis.z2phi * f + f**2
    variance = r * own + own.T / r - 2 * (basis.zphi_zphi)
    return _ratio(np.sqrt(np.maximum(variance, 0.0) / basis.n), np.abs(H), at_zero=np.inf)


def _ratio(top: Array, bottom: Array, at_zero: float = 0.0) -> Array:
    return np.divide(top, bottom, out=np.full_like(top, at_zero), where=bottom > 0)
