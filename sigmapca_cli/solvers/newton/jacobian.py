"""The residual S of the main loss on the rotation group: its moments, its pairwise curvature H and its full Jacobian J.

Notation: components y = YR with covariance C, σ_j² = C_jj, z = y/σ, Q_ij = E[z_i φ(z_j)]; a small rotation θ,
antisymmetric, lets y_i gain θ_ij·y_j. Then N_ij = σ_i σ_j Q_ij and A_ij = N_ij/σ_i² = (σ_j/σ_i)·Q_ij, S = A − Aᵀ.
Moments come from one pass over the rows: blocks fit the cache, in the dtype of the rows, and their sums are float64.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton.scores import Score
from sigmapca_cli.solvers.rows.inputs import split, times
from sigmapca_cli.solvers.rows.parallel import BLOCK_ROWS, count, means, total

Array = np.ndarray
SLICE = 512
"""Number of rows whose products of three components are held at once."""


@dataclass(frozen=True)
class ScoreMoments:
    """Moments of the standardised components z = Y·M of one candidate.

    Q (k, k): Q_ij = E[z_i φ(z_j)];  m (k,): E[z_j φ(z_j)];  c (k,): E[φ′(z_j)];
    T (k, k, k) or None: T_jil = E[φ′(z_j) z_i z_l];  error (k,) or None: standard error of m_j − c_j.
    """

    Q: Array
    c: Array
    T: Array | None = None
    error: Array | None = None

    @property
    def m(self) -> Array:
        """E[z_j φ(z_j)]."""
        return np.diag(self.Q)

    def signed(self, signs: Array) -> ScoreMoments:
        """Return the same moments for the score s_j·φ, s_j = ±1."""
        T = None if self.T is None else self.T * signs[:, None, None]
        return ScoreMoments(self.Q * signs, self.c * signs, T, self.error)


def measure(
    Y: Array,
    M: Array,
    score: Score,
    a: Array,
    *,
    third: bool = False,
    error: bool = False,
    block: int = BLOCK_ROWS,
) -> ScoreMoments:
    """Return the cross moments of z = Y·M over all rows of Y (n, k), M (k, k) = RΣ⁻¹, a (k,).

    Y may have a further column, the weights of the rows, of mean 1: the moments are weighted then.

    third: add T, which costs n·k³ multiplications. error: add the standard error of m_j − c_j, which assumes that
    rows are independent (overlapping patches are not: for them it is a lower bound).
    """
    Mt, at = np.ascontiguousarray(M, Y.dtype), np.asarray(a, Y.dtype)

    def part(rows: Array) -> tuple[Array, ...]:
        y, weights = split(rows, len(Mt))
        z = y @ Mt
        phi, dphi = (times(values, weights) for values in score(z, at))
        found = [z.T @ phi, np.ones(len(z), z.dtype) @ dphi]
        if third:
            found.append(third_moments(z, dphi))
        if error:
            found.append(np.square(z * phi - dphi).sum(0))
        return tuple(found)

    n, (Q, c, *more) = means(part, Y, block)
    T = unfolded(more.pop(0)) if third else None
    gap = np.diag(Q) - c
    se = np.sqrt(np.maximum(more.pop(0) - gap**2, 0) / n) if error else None
    return ScoreMoments(Q, c, T, se)


def third_moments(z: Array, dphi: Array) -> Array:
    """Return Σ φ′(z_j) z_i z_l for i ≤ l, (k, k(k + 1)/2), float64; z_i z_l is symmetric in i and l."""
    k = z.shape[1]
    T = np.zeros((k, k * (k + 1) // 2))
    pairs = np.empty((min(SLICE, len(z)), T.shape[1]), z.dtype)
    for start in range(0, len(z), SLICE):
        part = z[start : start + SLICE]
        held, place = pairs[: len(part)], 0
        for i in range(k):
            np.multiply(part[:, i : i + 1], part[:, i:], out=held[:, place : place + k - i])
            place += k - i
        T += dphi[start : start + SLICE].T @ held
    return T


def unfolded(rows: Array) -> Array:
    """Return rows (…, k(k + 1)/2) as (…, k, k), symmetric in the last two axes."""
    k = int(np.sqrt(2 * rows.shape[-1]))
    a, b = np.triu_indices(k)
    full = np.empty((*rows.shape[:-1], k, k))
    full[..., a, b] = full[..., b, a] = rows
    return full


def residual(moments: ScoreMoments, sigma: Array) -> Array:
    """Return S_ij = (σ_j/σ_i)·Q_ij − (σ_i/σ_j)·Q_ji, (k, k): 0 where the main loss is stationary for orthonormal W."""
    A = moments.Q * (sigma / sigma[:, None])
    return A - A.T


def curvature(moments: ScoreMoments, sigma: Array) -> tuple[Array, Array]:
    """Return H_ij = m_j σ_j²/σ_i² + m_i σ_i²/σ_j² − c_i − c_j and K, the sum of its absolute terms, each (k, k).

    H is ∂S_ij/∂θ_ij for independent components. S/K is an angle in radians, whatever the unit of x and the size
    of φ.
    """
    ratio = (sigma / sigma[:, None]) ** 2
    m, c = moments.m, moments.c
    gain, size = m * ratio, np.abs(m) * ratio
    return gain + gain.T - c - c[:, None], size + size.T + np.abs(c) + np.abs(c)[:, None]


@functools.lru_cache(maxsize=8)
def pairs(k: int) -> tuple[Array, Array, Array, Array]:
    """Return i and j of the pairs i < j, and for every (i, j) its pair index and its sign in θ (0 on the diagonal)."""
    upper_i, upper_j = np.triu_indices(k, 1)
    index = np.zeros((k, k), dtype=np.int64)
    index[upper_i, upper_j] = index[upper_j, upper_i] = np.arange(len(upper_i))
    grid = np.arange(k)
    sign = np.sign(grid[None, :] - grid[:, None]).astype(np.float64)
    return upper_i, upper_j, index, sign


def pack(S: Array) -> Array:
    """Return the entries above the diagonal of an antisymmetric matrix, (k(k−1)/2,)."""
    i, j, _, _ = pairs(len(S))
    return S[i, j]


def unpack(theta: Array, k: int) -> Array:
    """Return the antisymmetric matrix (k, k) with these entries above the diagonal."""
    i, j, _, _ = pairs(k)
    full = np.zeros((k, k))
    full[i, j] = theta
    return full - full.T


def jacobian(moments: ScoreMoments, sigma: Array, C: Array) -> Array:
    """Return the exact J = dS/dθ on pairs i < j, (k(k−1)/2, k(k−1)/2): σ changes with the rotation too.

    dA_ij = Σ_l θ_il·[N_lj/σ_i² − 2A_ij C_li/σ_i²] + Σ_l θ_jl·[E[y_i y_l φ′(z_j)]/σ_i² + (Q_ij − T_jij)·C_lj/(σ_i σ_j)].
    """
    if moments.T is None:
        raise ValueError("the Jacobian needs the third-order moments T")
    k = len(sigma)
    Q, s2 = moments.Q, sigma**2
    A = Q * (sigma / sigma[:, None])
    N = Q * np.outer(sigma, sigma)
    T = moments.T.transpose(1, 0, 2)  # T[i, j, l] = E[φ′(z_j) z_i z_l]
    own = N.T[None, :, :] / s2[:, None, None] - 2 * A[:, :, None] * (C / s2[:, None])[:, None, :]
    diagonal = np.einsum("ijj->ij", T)
    other = T * (sigma[None, None, :] / sigma[:, None, None])
    other = other + ((Q - diagonal) / np.outer(sigma, sigma))[:, :, None] * C[None, :, :]
    _, _, index, sign = pairs(k)
    size = k * (k - 1) // 2
    rows = np.broadcast_to(index[:, :, None], (k, k, k)) * size
    flat = np.zeros(size * size)
    for columns, values in (
        (index[:, None, :], own * sign[:, None, :]),
        (index[None, :, :], other * sign[None, :, :]),
    ):
        where = (rows + columns).ravel()
        flat += np.bincount(where, (values * sign[:, :, None]).ravel(), minlength=size * size)
    return flat.reshape(size, size)


class Product:
    """θ ↦ Jθ on pairs i < j, (k(k−1)/2,), for the rows Y (n, k) at y = YR.

    Holds z = Y·RΣ⁻¹ and φ′(z), times the weight of the row, side by side, (n, 2k) in the type of Y.
    """

    def __init__(
        self, Y: Array, C: Array, R: Array, score: Score, a: Array, signs: Array, block: int = BLOCK_ROWS
    ) -> None:
        """Y (n, k), or with weights (n, k + 1), second moments C (k, k), rotation R (k, k), a and signs (k,)."""
        self.n, self.k, self.block = count(Y), len(C), block
        self.C = R.T @ C @ R
        self.sigma = np.sqrt(np.diag(self.C))
        self.held = np.empty((len(Y), 2 * self.k), Y.dtype)
        self.held[:, : self.k], weights = split(Y, self.k)
        self.held[:, self.k :] = 1 if weights is None else weights
        Q, own = self._hold((R / self.sigma).astype(Y.dtype), score, a.astype(Y.dtype), signs)
        self.N = Q * np.outer(self.sigma, self.sigma)
        self.A = Q * (self.sigma / self.sigma[:, None])
        self.rest = (Q - own) / np.outer(self.sigma, self.sigma)
        self.held[:, self.k :] *= signs.astype(Y.dtype)

    def _hold(self, M: Array, score: Score, a: Array, signs: Array) -> tuple[Array, Array]:
        """Fill the held rows in place; return Q_ij = E[z_i φ(z_j)] and T_jij = E[φ′(z_j) z_i z_j], each (k, k)."""
        k = self.k

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows[:, :k] @ M
            phi, dphi = (times(values, rows[:, k:]) for values in score(z, a))
            rows[:, :k], rows[:, k:] = z, dphi
            return z.T @ phi, z.T @ (dphi * z)

        Q, own = (value * signs / self.n for value in total(part, self.held, self.block))
        return Q, own

    def __call__(self, theta: Array) -> Array:
        """Return Jθ (pairs,): dS = dA − dAᵀ, where the components change by dy = yθᵀ.

        dA_ij = (θN)_ij/σ_i² − 2A_ij(θC)_ii/σ_i² + E[z_i φ′(z_j) dy_j]/σ_i + (Q_ij − T_jij)(θC)_jj/(σ_i σ_j).
        """
        k, turn = self.k, unpack(theta, self.k)
        moves = (turn * self.sigma).T.astype(self.held.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows[:, :k]
            return (z.T @ (rows[:, k:] * (z @ moves)),)

        (weighted,) = total(part, self.held, self.block)
        s, drift = self.sigma[:, None], np.einsum("il,li->i", turn, self.C)
        own = (turn @ self.N - 2 * self.A * drift[:, None]) / s**2
        dA = own + weighted / (self.n * s) + self.rest * drift
        return pack(dA - dA.T)
