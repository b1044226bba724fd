"""The numbers that describe one solution, named as they are stored in a run (numpy, float64, biased
variance).

Notation: x (n, p) centred rows, C (p, p) their covariance, W (p, k) filters, y = xW, z = y / std(y).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.sources.columns import excess_kurtosis

Array = NDArray[np.float64]

#: E[log cosh ν] for a standard normal ν, the constant that makes the negentropy of a Gaussian zero.
LOG_COSH_OF_GAUSSIAN = 0.37456720749143807


def reconstruction_error(W: ArrayLike, C: ArrayLike) -> float:
    """E‖x − xWWᵀ‖², summed over the features, from the covariance: tr((I − P) C (I − P)ᵀ) with P = WWᵀ."""
    W, C = _float(W), _float(C)
    # tr C − 2 tr(WᵀCW) + tr(WᵀCW · WᵀW): k × k products only.
    S = W.T @ C @ W
    return float(max(np.trace(C) - 2 * np.trace(S) + np.sum(S * (W.T @ W)), 0.0))


def explained_variance(W: ArrayLike, C: ArrayLike) -> float:
    """Fraction of the variance that the best linear reconstruction of x from y = xW explains, in [0, 1].

    tr(CW (WᵀCW)⁺ WᵀC) / tr C: the sum of the leading eigenvalues for PCA, and the same for every basis of one
    subspace, so that filters of any norm are judged by what they span. Data without variance gives 0.
    """
    W, C = _float(W), _float(C)
    total = np.trace(C)
    if total <= 0:
        return 0.0
    W = W / _norms(W)
    CW = C @ W
    explained = np.trace(CW @ np.linalg.pinv(W.T @ CW, rcond=1e-12, hermitian=True) @ CW.T)
    return float(np.clip(explained / total, 0.0, 1.0))


def orthogonality_error(W: ArrayLike) -> float:
    """‖WᵀW − I‖_F."""
    W = _float(W)
    return float(np.linalg.norm(W.T @ W - np.eye(W.shape[1])))


def unit_norm_error(W: ArrayLike) -> float:
    """The largest |‖w‖ − 1| over the filters."""
    return float(np.max(np.abs(np.linalg.norm(_float(W), axis=0) - 1)))


def component_std(W: ArrayLike, C: ArrayLike) -> Array:
    """std(y) = √diag(WᵀCW), shape (k,)."""
    W = _float(W)
    return np.sqrt(np.maximum(np.sum(W * (_float(C) @ W), axis=0), 0.0))


def sigma_error(sigma: ArrayLike, W: ArrayLike, C: ArrayLike) -> float:
    """The largest |σ − std(y)| / std(y) over the components that have variance; 0 when none has."""
    sigma, std = _float(sigma), component_std(W, C)
    alive = std > 1e-12 * max(std.max(initial=0.0), np.finfo(float).tiny)
    return float(np.max(np.abs(sigma[alive] - std[alive]) / std[alive], initial=0.0))


def kurtosis(y: ArrayLike) -> Array:
    """Excess kurtosis E[z⁴] − 3 of each column of y (n, k): 0 Gaussian, 3 Laplace, −1.2 uniform; 0 for a
    constant.
    """
    return excess_kurtosis(_float(y))


def log_cosh(z: Array) -> Array:
    """log cosh z without overflow, in the precision of z."""
    magnitude = np.abs(z)
    tail = np.exp(-2 * magnitude)
    tail += 1
    # log(½(1 + e^{−2|z|})): its argument lies in (½, 1], where log1p has nothing to add.
    tail *= 0.5
    return np.add(magnitude, np.log(tail, out=tail), out=magnitude)


def correlation(W: ArrayLike, C: ArrayLike) -> float:
    """The largest |corr(y_i, y_j)|, i ≠ j, from the covariance; 0 for one component."""
    W = _float(W)
    S = W.T @ _float(C) @ W
    std = np.sqrt(np.maximum(np.diag(S), 0.0))
    scale = np.where(std > 0, std, np.inf)
    R = np.abs(S / np.outer(scale, scale))
    np.fill_diagonal(R, 0.0)
    return float(min(R.max(initial=0.0), 1.0))


def cosines(A: ArrayLike, B: ArrayLike) -> Array:
    """|cos| between every column of A (p, k) and of B (p, l): (k, l); a zero column has cosine 0."""
    A, B = _float(A), _float(B)
    return np.minimum(np.abs((A / _norms(A)).T @ (B / _norms(B))), 1.0)


def correlations(Y: ArrayLike, S: ArrayLike) -> Array:
    """|corr| between every column of Y (n, k) and of S (n, l): (k, l)."""
    Y, S = _float(Y), _float(S)
    return cosines(Y - Y.mean(axis=0), S - S.mean(axis=0))


def match(similarity: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the one-to-one pairing with the largest sum (Hungarian); min(k, l) pairs, rows in
    order.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(_float(similarity), maximize=True)
    return rows, columns


def mcc(A: ArrayLike, B: ArrayLike) -> float:
    """Return the mean |cos| of matched filters, the columns of A (p, k) and B (p, l), in [0, 1].

    Invariant to sign, order and scale of either side. When B has more columns than A (or fewer), the mean is
    over the pairs that exist.
    """
    similarity = cosines(A, B)
    return float(similarity[match(similarity)].mean())


def amari(P: ArrayLike) -> float:
    """Amari distance of a square P (k, k) from a scaled permutation, in [0, 1].

    (Σ_i (Σ_j |P_ij| / max_j |P_ij| − 1) + Σ_j (Σ_i |P_ij| / max_i |P_ij| − 1)) / (2k(k − 1)); a rotation by
    45° gives 1. P is what maps the true sources to the recovered ones; give both unit variance first, since
    scale is not removed here.
    """
    P = np.abs(_float(P))
    if P.ndim != 2 or P.shape[0] != P.shape[1]:
        raise ValueError(f"the Amari distance needs a square matrix, not {P.shape}")
    k = len(P)
    if k == 1:
        return 0.0
    tiny = np.finfo(float).tiny
    by_row = P.sum(axis=1) / np.maximum(P.max(axis=1), tiny) - 1
    by_column = P.sum(axis=0) / np.maximum(P.max(axis=0), tiny) - 1
    # A row without any entry recovers nothing: the worst case, k − 1.
    by_row[P.max(axis=1) == 0] = by_column[P.max(axis=0) == 0] = k - 1
    return float((by_row.sum() + by_column.sum()) / (2 * k * (k - 1)))


def _float(a: ArrayLike) -> Array:
    return np.asarray(a, dtype=np.float64)


def _norms(W: Array) -> Array:
    norms = np.linalg.norm(W, axis=0)
    return np.where(norms > 0, norms, 1.0)
