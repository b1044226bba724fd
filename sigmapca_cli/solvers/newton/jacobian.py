"""The residual S of the main loss on the rotation group, its pairwise curvature H and its full Jacobian J.

Notation: components y = YR with covariance C, σ_j² = C_jj, z = y/σ, Q_ij = E[z_i φ(z_j)]; a small rotation θ,
antisymmetric, lets y_i gain θ_ij·y_j. Then N_ij = σ_i σ_j Q_ij and A_ij = N_ij/σ_i² = (σ_j/σ_i)·Q_ij, S = A −
Aᵀ.
"""

from __future__ import annotations

import functools

import numpy as np

from sigmapca_cli.solvers.newton.score_moments import ScoreMoments

Array = np.ndarray


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
def _pairs(k: int) -> tuple[Array, Array, Array, Array]:
    """Return i and j of the pairs i < j, and for every (i, j) its pair index and its sign in θ (0 on the diagonal)."""
    upper_i, upper_j = np.triu_indices(k, 1)
    index = np.zeros((k, k), dtype=np.int64)
    index[upper_i, upper_j] = index[upper_j, upper_i] = np.arange(len(upper_i))
    grid = np.arange(k)
    sign = np.sign(grid[None, :] - grid[:, None]).astype(np.float64)
    return upper_i, upper_j, index, sign


def pack(S: Array) -> Array:
    """Return the entries above the diagonal of an antisymmetric matrix, (k(k−1)/2,)."""
    i, j, _, _ = _pairs(len(S))
    return S[i, j]


def unpack(theta: Array, k: int) -> Array:
    """Return the antisymmetric matrix (k, k) with these entries above the diagonal."""
    i, j, _, _ = _pairs(k)
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
    _, _, index, sign = _pairs(k)
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
