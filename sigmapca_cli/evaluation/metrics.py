"""The numbers that describe one solution, named as they are stored in a run (NumPy, float64, biased variance).

Notation: x (n, p) centred rows, C (p, p) their covariance, W (p, k) filters, y = xW, z = y / std(y).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.data.moments.implicit import as_covariance
from sigmapca_cli.data.readers.columns import excess_kurtosis
from sigmapca_cli.evaluation.matching import Array as Array
from sigmapca_cli.evaluation.matching import amari as amari
from sigmapca_cli.evaluation.matching import as_float, column_norms
from sigmapca_cli.evaluation.matching import correlations as correlations
from sigmapca_cli.evaluation.matching import cosines as cosines
from sigmapca_cli.evaluation.matching import match as match
from sigmapca_cli.evaluation.matching import mcc as mcc

#: E[log cosh ν] for a standard normal ν, the constant that makes the negentropy of a Gaussian zero.
LOG_COSH_OF_GAUSSIAN = 0.37456720749143807


def reconstruction_error(W: ArrayLike, C: ArrayLike) -> float:
    """Return the error E‖x − xWWᵀ‖² of the tied linear reconstruction, from the covariance.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.
    C : array-like of shape (p, p)
        Biased covariance of the centred rows.

    Returns
    -------
    float
        Sum over the features, in squared units of x.

    Notes
    -----
    tr((I − P)C(I − P)ᵀ) with P = WWᵀ. W need not be orthonormal.
    """
    W, moments = as_float(W), as_covariance(C)
    # tr C − 2 tr(WᵀCW) + tr(WᵀCW · WᵀW): k × k products only.
    S = W.T @ moments @ W
    return float(max(moments.trace() - 2 * np.trace(S) + np.sum(S * (W.T @ W)), 0.0))


def explained_variance(W: ArrayLike, C: ArrayLike) -> float:
    """Return the share of the variance that the best linear reconstruction of x from y = xW explains.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.
    C : array-like of shape (p, p)
        Biased covariance of the centred rows.

    Returns
    -------
    float
        In [0, 1]; 0 for data without variance.

    Notes
    -----
    tr(CW(WᵀCW)⁺WᵀC)/tr C: for PCA the share of the leading eigenvalues. Every basis of a subspace has the same
    value, so filters of any norm are judged by what they span.
    """
    W, moments = as_float(W), as_covariance(C)
    total = moments.trace()
    if total <= 0:
        return 0.0
    W = W / column_norms(W)
    CW = moments @ W
    inverse = np.linalg.pinv(W.T @ CW, rcond=1e-12, hermitian=True)
    explained = np.sum(inverse * (CW.T @ CW))  # the trace without a matrix (p, p)
    return float(np.clip(explained / total, 0.0, 1.0))


def orthogonality_error(W: ArrayLike) -> float:
    """Return ‖WᵀW − I‖_F.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.

    Returns
    -------
    float
        0 for orthonormal filters.
    """
    W = as_float(W)
    return float(np.linalg.norm(W.T @ W - np.eye(W.shape[1])))


def unit_norm_error(W: ArrayLike) -> float:
    """Return the largest |‖w‖ − 1| over the filters.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.

    Returns
    -------
    float
        0 where each filter has unit norm.
    """
    return float(np.max(np.abs(np.linalg.norm(as_float(W), axis=0) - 1)))


def component_std(W: ArrayLike, C: ArrayLike) -> Array:
    """Return the standard deviation of each component, √diag(WᵀCW).

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.
    C : array-like of shape (p, p)
        Biased covariance of the centred rows.

    Returns
    -------
    ndarray of shape (k,)
        In units of x.
    """
    W = as_float(W)
    return np.sqrt(np.maximum(np.sum(W * (as_covariance(C) @ W), axis=0), 0.0))


def sigma_error(sigma: ArrayLike, W: ArrayLike, C: ArrayLike) -> float:
    """Return the largest |σ − std(y)|/std(y) over the components that have variance.

    Parameters
    ----------
    sigma : array-like of shape (k,)
        Standard deviations to be judged.
    W : array-like of shape (p, k)
        Filters, one in a column.
    C : array-like of shape (p, p)
        Biased covariance of the centred rows.

    Returns
    -------
    float
        A relative error; 0 where no component has variance.
    """
    sigma, std = as_float(sigma), component_std(W, C)
    alive = std > 1e-12 * max(std.max(initial=0.0), np.finfo(float).tiny)
    return float(np.max(np.abs(sigma[alive] - std[alive]) / std[alive], initial=0.0))


def kurtosis(y: ArrayLike) -> Array:
    """Return the excess kurtosis E[z⁴] − 3 of each column, z = (y − E y)/std(y).

    Parameters
    ----------
    y : array-like of shape (n, k)
        Components, one in a column; they need not be centred.

    Returns
    -------
    ndarray of shape (k,)
        0 for a Gaussian or a constant, 3 for Laplace, −1.2 for uniform.
    """
    return excess_kurtosis(as_float(y))


def negentropy(y: ArrayLike) -> Array:
    """Return (E[log cosh z] − E[log cosh ν])² of each column, ν standard normal.

    Parameters
    ----------
    y : array-like of shape (n, k)
        Components, one in a column; they need not be centred.

    Returns
    -------
    ndarray of shape (k,)
        0 for a Gaussian or a constant, larger the further from it on either side.

    Notes
    -----
    z = (y − E y)/std(y) and E[log cosh ν] = 0.374567: an approximation of negentropy without its constant factor.

    References
    ----------
    A. Hyvärinen (1998). New approximations of differential entropy for independent component analysis and
    projection pursuit. NIPS 10.
    """
    z, alive = _standardised(as_float(y))
    return np.where(alive, (np.mean(log_cosh(z), axis=0) - LOG_COSH_OF_GAUSSIAN) ** 2, 0.0)


def log_cosh(z: Array) -> Array:
    """Return log cosh z without overflow.

    Parameters
    ----------
    z : ndarray
        Any shape and any size of its values.

    Returns
    -------
    ndarray
        Of the shape and precision of z.
    """
    magnitude = np.abs(z)
    tail = np.exp(-2 * magnitude)
    tail += 1
    # log(½(1 + e^{−2|z|})): its argument lies in (½, 1], where log1p has nothing to add.
    tail *= 0.5
    return np.add(magnitude, np.log(tail, out=tail), out=magnitude)


def correlation(W: ArrayLike, C: ArrayLike) -> float:
    """Return the largest |corr(y_i, y_j)|, i ≠ j, from the covariance.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters, one in a column.
    C : array-like of shape (p, p)
        Biased covariance of the centred rows.

    Returns
    -------
    float
        In [0, 1]; 0 for one component.
    """
    W = as_float(W)
    S = W.T @ as_covariance(C) @ W
    std = np.sqrt(np.maximum(np.diag(S), 0.0))
    scale = np.where(std > 0, std, np.inf)
    R = np.abs(S / np.outer(scale, scale))
    np.fill_diagonal(R, 0.0)
    return float(min(R.max(initial=0.0), 1.0))


def _standardised(y: Array) -> tuple[Array, NDArray[np.bool_]]:
    y = y - y.mean(axis=0)
    std = y.std(axis=0)
    return y / np.where(std > 0, std, 1.0), std > 0
