"""What the rows say about the answer of solver=moments: standard errors, and rows that own a component."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.processes import mapped
from sigmapca_cli.solvers import contrast
from sigmapca_cli.solvers.fourth import Point
from sigmapca_cli.solvers.jacobian import pack

Array = np.ndarray

NAMED = 3
"""Components that are named so at most."""
GROUPS = 64
"""Groups of neighbouring rows. Their spread gives errors that hold for rows that depend on their neighbours."""
FEW, SHARE = 50.0, 1e-3
"""Rows that carry a fourth moment are named where they are fewer than this, and than this share of all rows; so is a
row that is half of it alone. (Of a Laplace variable 1.4 % of the rows carry it.)"""


@dataclass(frozen=True)
class Groups:
    """Moments of y = YR by group, (groups, …); weight (groups,): share of the rows.

    C: E[y_a y_j]; Q: E[y_a y_j³]; B: E[y_a² y_j²]; mean: E[y_a]; T (k, k): E[y_a y_j²], third (k,): E[y_j³], of all
    rows. fourth and
    eighth (k,): Σz⁴ and Σz⁸, z = y/σ; largest (k,): the row of largest |z|, from 0, and greatest (k,): that |z|.
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
        """(k,): (Σz⁴)²/Σz⁸, how many rows carry the fourth moment of each component; 1 where one row is all of it."""
        return np.asarray(self.fourth**2 / np.maximum(self.eighth, np.finfo(np.float64).tiny))

    def error(self, influence: Array) -> Array:
        """Standard error of a statistic from the influence of each group on it, (groups, …)."""
        groups = len(self.weight)
        return np.asarray(np.sqrt(np.tensordot(self.weight**2, influence**2, axes=1) * groups / (groups - 1)))


def grouped(Y: Array, point: Point) -> Groups:
    """Moments by group of y = YR, R and σ those of the point; one pass over the rows."""
    sigma, n = point.sigma, len(Y)
    count = int(np.clip(n // 4, 2, GROUPS))
    edges = np.linspace(0, n, count + 1).astype(np.int64)
    M = np.ascontiguousarray(point.R / sigma, Y.dtype)

    def part(bounds: tuple[int, int]) -> tuple[Array, ...]:
        z = (Y[bounds[0] : bounds[1]] @ M).astype(np.float64)
        square = z * z
        top = square.argmax(0)
        power = square * square
        return (
            z.T @ z / len(z),
            z.T @ (square * z) / len(z),
            square.T @ square / len(z),
            z.mean(0),
            z.T @ square,
            (square * z).sum(0),
            power.sum(0),
            np.square(power).sum(0),
            top + bounds[0],
            np.sqrt(square.max(0)),
        )

    found = list(zip(*mapped(part, itertools.pairwise(edges)), strict=True))
    C, Q, B, mean = (np.stack(found[i]) for i in range(4))
    T, third, fourth, eighth = (sum(found[i]) for i in range(4, 8))
    number, size = np.stack(found[8]), np.stack(found[9])
    widest = size.argmax(0)
    return Groups(
        weight=np.diff(edges) / n,
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
    """(groups, pairs): what each group adds to the gradient of F, through second and fourth moments and the mean.

    dG_aj = 4(1 − 3λs_j)(dC_jj C_aj + C_jj dC_aj) + 4λs_j dQ_aj, dQ_aj less 3E[y_a y_j²]dm_j + E[y_j³]dm_a.
    """
    C, s = point.C, contrast.signs(point.kappa)
    all_C, all_Q = (np.tensordot(groups.weight, x, axes=1) for x in (groups.C, groups.Q))
    m = groups.mean - groups.weight @ groups.mean
    dC, dQ = groups.C - all_C, groups.Q - all_Q
    dQ = dQ - 3 * groups.T * m[:, None, :] - groups.third * m[:, :, None]
    own = np.einsum("gjj->gj", dC)
    dG = 4 * (1 - 3 * lam * s) * (own[:, None, :] * C + np.diag(C) * dC) + 4 * lam * s * dQ
    return np.stack([pack(one.T - one) for one in dG])


def pair_curvature(
    groups: Groups, point: Point, lam: float, *, variances: bool = True
) -> tuple[Array, Array]:
    """(c, its standard error), (k, k): −d²F/dθ_ij² as one pair turns; 0 on the diagonal.

    c_ij = 4(C_ii − C_jj)² − 16C_ij² + 4λ(|κ_i| + |κ_j|) − 12λ(s_i + s_j)cum(y_i, y_i, y_j, y_j), less what the
    difference of two equal variances adds on average. Without `variances` the first term is left out.
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
    """How many standard errors the curvature of a Gaussian pair of equal variance exceeds with probability `level`.

    Any of the pairs of k components. The axes sit where chance made F greatest, so the curvature is the larger of two
    Rayleigh variables, over an estimate of its scale from so many groups.
    """
    each, freedom = level / max(k * (k - 1) // 2, 1), groups - 1
    return float(np.sqrt(freedom * ((each / 2) ** (-2 / freedom) - 1)))


def angle_errors(groups: Groups, point: Point, lam: float, J: Array | None, D: Array) -> Array:
    """(k, k): the standard error of the angle of every pair, radians; diagonal 0.

    Those of J⁻¹dg with J = −H whole, or of dg/D where J is not held: then no pair is taken to act on another.
    """
    slopes = slopes_by_group(groups, point, lam)
    moved = slopes / D if J is None else np.linalg.lstsq(J, slopes.T, rcond=1e-9)[0].T
    k = len(point.C)
    error = np.zeros((k, k))
    error[np.triu_indices(k, 1)] = groups.error(moved)
    return error + error.T


def owners(groups: Groups, n: int) -> list[str]:
    """One sentence for every component whose fourth moment few of n rows carry; rows and components numbered from 1."""
    share = groups.greatest**4 / groups.fourth
    few = (groups.carrying < min(FEW, SHARE * n)) | (share > 0.5)
    return [  # the first few: where all are, one sentence each would not be read
        f"component {j + 1} is owned by few rows: {groups.carrying[j]:.1f} carry its fourth moment, and row "
        f"{groups.largest[j] + 1} is {100 * share[j]:.0f} % of it; look at that row, or set solver.clip=0.999"
        for j in np.flatnonzero(few)[:NAMED]
    ]
