"""Standard errors of the answer of solver=moments, and components that depend on few rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers.fourth_moments import contrast
from sigmapca_cli.solvers.fourth_moments.fourth import Point
from sigmapca_cli.solvers.newton.jacobian import pack
from sigmapca_cli.solvers.rows.inputs import scaled_to_mean_one, split, times
from sigmapca_cli.solvers.rows.stretches import GROUPS, error_of, fitted_threshold, widened_means
from sigmapca_cli.system.processes import mapped
from sigmapca_cli.system.row_shards import added, gathered, place

Array = np.ndarray

NAMED = 3
"""Largest number of components that `owners` names."""
CARRIED_BY, CARRIED_SHARE = 50.0, 1e-3
"""A component is named if the rows that carry its fourth moment are fewer than CARRIED_BY and fewer than CARRIED_SHARE
of all rows, or if one row is half of the moment. (1.4 % of the rows of a Laplace variable carry it.)"""


@dataclass(frozen=True)
class Groups:
    """Moments of y = YR by group, (groups, …); weight (groups,): share of the rows.

    By group, C: E[y_a y_j]; Q: E[y_a y_j³]; B: E[y_a² y_j²]; mean: E[y_a]. Over all rows, T (k, k): E[y_a y_j²]; third
    (k,): E[y_j³]; fourth and eighth (k,): Σz⁴ and Σz⁸, z = y/σ; largest (k,): index of the row of largest |z|, from
    0; greatest (k,): that |z|.
    """

    weight: Array
    C: Array
    Q: Array
    B: Array
    mean: Array
    T: Array
    third: Array
    fourth: Array
    eighth: Array
    largest: Array
    greatest: Array

    @property
    def carrying(self) -> Array:
        """(Σz⁴)²/Σz⁸, (k,): the number of rows that carry the fourth moment of each component; 1 if one row is all
        of it."""
        return np.asarray(self.fourth**2 / np.maximum(self.eighth, np.finfo(np.float64).tiny))

    def in_time(self) -> Groups:
        """Return the moments of rows in time: of groups that are joined until they hardly depend on each other."""
        means = {name: getattr(self, name) for name in ("C", "Q", "B", "mean")}
        return replace(self, **widened_means(means, self.weight, ("C", "Q", "B")))

    def error(self, influence: Array) -> Array:
        """Return the standard error of a statistic from the influence of each group on it, (groups, …)."""
        return error_of(self.weight, influence)


def group_moments(Y: Array, point: Point) -> Groups:
    """Return the moments by group of y = YR, with R and σ of the point; one pass over the rows.

    Weights of the rows may be a further column of Y. `largest` is the row of largest |z|, whatever its weight.
    """
    sigma, (before, n) = point.sigma, place(Y)
    Y = scaled_to_mean_one(Y, len(sigma))
    count = int(np.clip(n // 4, 2, GROUPS))
    edges = np.linspace(0, n, count + 1).astype(np.int64)
    M = np.ascontiguousarray(point.R / sigma, Y.dtype)
    local = np.clip(edges - before, 0, len(Y))  # a group may lie in the shares of two ranks

    def part(bounds: tuple[int, int]) -> tuple[Array, ...]:
        y, weights = split(Y[bounds[0] : bounds[1]], len(sigma))
        z = (y @ M).astype(np.float64)
        if not len(z):
            z, weights = np.zeros((1, len(sigma))), None
        square = z * z
        top = square.argmax(0)
        wz, power = times(z, weights), times(square * square, weights)
        mass = float(len(y)) if weights is None else float(weights.sum())
        return (
            wz.T @ z,
            wz.T @ (square * z),
            times(square, weights).T @ square,
            wz.sum(0),
            wz.T @ square,
            (wz * square).sum(0),
            power.sum(0),
            np.square(power).sum(0),
            np.array([mass]),
            top + bounds[0] + before,
            np.sqrt(square.max(0)),
        )

    found = list(zip(*mapped(part, itertools.pairwise(local)), strict=True))
    by_group = [np.stack(found[i]) for i in (0, 1, 2, 3, 8)]
    over_all = [np.asarray(sum(found[i])) for i in range(4, 8)]
    C, Q, B, mean, size_of, T, third, fourth, eighth = added((*by_group, *over_all))
    C, Q, B, mean = C / size_of[:, None], Q / size_of[:, None], B / size_of[:, None], mean / size_of
    extremes = gathered((np.stack(found[9]), np.stack(found[10])))
    number, size = (np.concatenate(arrays) for arrays in zip(*extremes, strict=True))
    widest = size.argmax(0)
    return Groups(
        weight=size_of[:, 0] / n,
        C=C * np.outer(sigma, sigma),
        Q=Q * np.outer(sigma, sigma**3),
        B=B * np.outer(sigma, sigma) ** 2,
        mean=mean * sigma,
        T=T / n * np.outer(sigma, sigma**2),
        third=third / n * sigma**3,
        fourth=fourth,
        eighth=eighth,
        largest=number[widest, np.arange(len(sigma))],
        greatest=size[widest, np.arange(len(sigma))],
    )


def slopes_by_group(groups: Groups, point: Point, lam: float) -> Array:
    """Return the influence of each group on the gradient of F, (groups, pairs).

    It acts through the mean, the second and the fourth moments:
    dG_aj = 4(1 − 3λs_j)(dC_jj C_aj + C_jj dC_aj) + 4λs_j dQ_aj, dQ_aj less 3E[y_a y_j²]dm_j + E[y_j³]dm_a.
    """
    C, s = point.C, contrast.signs(point.kappa)
    all_C, all_Q = (np.tensordot(groups.weight, x, axes=1) for x in (groups.C, groups.Q))
    m = groups.mean - groups.weight @ groups.mean
    dC, dQ = groups.C - all_C, groups.Q - all_Q
    dQ = dQ - 3 * groups.T * m[:, None, :] - groups.third * m[:, :, None]
    own = np.einsum("gjj->gj", dC)
    dG = 4 * (1 - 3 * lam * s) * (own[:, None, :] * C + np.diag(C) * dC) + 4 * lam * s * dQ
    return np.stack([pack(group.T - group) for group in dG])


def pair_curvature(
    groups: Groups, point: Point, lam: float, *, variances: bool = True
) -> tuple[Array, Array]:
    """Return c = −∂²F/∂θ_ij² of each pair and its standard error, each (k, k) with diagonal 0.

    c_ij = 4(C_ii − C_jj)² − 16C_ij² + 4λ(|κ_i| + |κ_j|) − 12λ(s_i + s_j)cum(y_i, y_i, y_j, y_j), less the mean that
    sampling error gives the first term for two equal variances. Without `variances` the first term is left out.
    """
    C, s, kappa = point.C, contrast.signs(point.kappa), np.abs(point.kappa)
    v, both = np.diag(C), s + s[:, None]
    all_C, all_B = (np.tensordot(groups.weight, x, axes=1) for x in (groups.C, groups.B))
    m = groups.mean - groups.weight @ groups.mean
    dC, dB = groups.C - all_C, groups.B - all_B
    dv = np.einsum("gjj->gj", dC)
    drift = m[:, :, None] * groups.T + m[:, None, :] * groups.T.T
    mixed = dB - v[:, None] * dv[:, None, :] - v * dv[:, :, None] - 4 * C * dC - 2 * drift
    own = s * (np.einsum("gjj->gj", dB) - 6 * v * dv - 4 * groups.third * m)
    apart, moved = variances * (v - v[:, None]), dv[:, None, :] - dv[:, :, None]
    change = (
        8 * apart * moved
        - 32 * C * dC
        + 4 * lam * (own[:, None, :] + own[:, :, None])
        - 12 * lam * both * mixed
    )
    shared = all_B - np.outer(v, v) - 2 * C**2
    c = 4 * apart**2 - 16 * C**2 + 4 * lam * (kappa + kappa[:, None]) - 12 * lam * both * shared
    c -= 4 * variances * groups.error(moved) ** 2
    off = 1 - np.eye(len(v))
    return c * off, groups.error(change) * off


def threshold(k: int, groups: int, level: float = 0.05) -> float:
    """Return the number of standard errors above which the curvature of a pair counts as more than chance.

    If all k components are Gaussian with equal variance, one of their pairs exceeds it with probability `level`. The
    axes are those where chance made F largest.
    """
    return fitted_threshold(level / max(k * (k - 1) // 2, 1), groups - 1)


def angle_errors(groups: Groups, point: Point, lam: float, J: Array | None, D: Array) -> Array:
    """Return the standard error of the angle of every pair, (k, k), radians; diagonal 0.

    The angles are J⁻¹dg with J = −H, or dg/D if J is None: then pairs are assumed not to act on each other.
    """
    slopes = slopes_by_group(groups, point, lam)
    moved = slopes / D if J is None else np.linalg.lstsq(J, slopes.T, rcond=1e-9)[0].T
    k = len(point.C)
    error = np.zeros((k, k))
    error[np.triu_indices(k, 1)] = groups.error(moved)
    return error + error.T


def owners(groups: Groups, n: int) -> list[str]:
    """Return one sentence for each component whose fourth moment few of the n rows carry, for NAMED of them at most.

    Rows and components are numbered from 1.
    """
    share = groups.greatest**4 / groups.fourth
    few = (groups.carrying < min(CARRIED_BY, CARRIED_SHARE * n)) | (share > 0.5)
    return [  # a sentence for each of many components would not be read
        f"component {j + 1} depends on few rows: {groups.carrying[j]:.1f} carry its fourth moment, and row "
        f"{groups.largest[j] + 1} makes up {100 * share[j]:.0f} % of it; check that row, or set solver.clip=0.999"
        for j in np.flatnonzero(few)[:NAMED]
    ]
