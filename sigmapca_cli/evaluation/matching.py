"""How alike two solutions are, or a solution and the truth: cosines, correlations, their best matching."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def cosines(A: ArrayLike, B: ArrayLike) -> Array:
    """Return |cos| between every column of A and every column of B.

    Parameters
    ----------
    A : array-like of shape (p, k)
        Directions of any norm, one in a column.
    B : array-like of shape (p, l)
        The others.

    Returns
    -------
    ndarray of shape (k, l)
        In [0, 1]; a zero column has cosine 0.
    """
    A, B = as_float(A), as_float(B)
    return np.minimum(np.abs((A / column_norms(A)).T @ (B / column_norms(B))), 1.0)


def correlations(Y: ArrayLike, S: ArrayLike) -> Array:
    """Return |corr| between every column of Y and every column of S.

    Parameters
    ----------
    Y : array-like of shape (n, k)
        Components.
    S : array-like of shape (n, l)
        Sources, on the same rows.

    Returns
    -------
    ndarray of shape (k, l)
        In [0, 1]; a constant column has correlation 0.
    """
    Y, S = as_float(Y), as_float(S)
    return cosines(Y - Y.mean(axis=0), S - S.mean(axis=0))


def match(similarity: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the one-to-one pairing of rows with columns that has the largest sum.

    Parameters
    ----------
    similarity : array-like of shape (k, l)
        Such as `cosines` or `correlations`.

    Returns
    -------
    rows : ndarray of int, of shape (min(k, l),)
        Row of each pair, increasing.
    columns : ndarray of int, of shape (min(k, l),)
        Column of each pair.

    References
    ----------
    H. W. Kuhn (1955). The Hungarian method for the assignment problem. Naval Research Logistics Quarterly 2.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(as_float(similarity), maximize=True)
    return rows, columns


def mcc(A: ArrayLike, B: ArrayLike, of: str = "filters") -> float:
    """Return the mean matched |cos| of filters, or |corr| of sources.

    Parameters
    ----------
    A : array-like of shape (p, k), or (n, k) for sources
        Filters or components, one in a column.
    B : array-like of shape (p, l), or (n, l) for sources
        What they are compared with.
    of : {"filters", "sources"}
        Whether columns are compared by `cosines` or by `correlations`.

    Returns
    -------
    float
        In [0, 1]; the mean over the min(k, l) pairs of `match`.

    Notes
    -----
    Sign, order and scale of the columns of either side change nothing.
    """
    similarity = cosines(A, B) if of == "filters" else correlations(A, B)
    return float(similarity[match(similarity)].mean())


def amari(P: ArrayLike) -> float:
    """Return the Amari distance of a square matrix from a scaled permutation.

    Parameters
    ----------
    P : array-like of shape (k, k)
        What maps the true sources to the recovered ones, both of unit variance: scale is not removed here.

    Returns
    -------
    float
        In [0, 1]; 0 for a scaled permutation, 1 for a rotation of two sources by 45°.

    Raises
    ------
    ValueError
        If P is not square.

    Notes
    -----
    (Σ_i (Σ_j |P_ij|/max_j |P_ij| − 1) + Σ_j (Σ_i |P_ij|/max_i |P_ij| − 1))/(2k(k − 1)).

    References
    ----------
    S. Amari, A. Cichocki, H. H. Yang (1996). A new learning algorithm for blind signal separation. NIPS 8.
    """
    P = np.abs(as_float(P))
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


def as_float(a: ArrayLike) -> Array:
    """Return an array-like in float64.

    Parameters
    ----------
    a : array-like
        Numbers of any real type.

    Returns
    -------
    ndarray
        The same array, where it is float64 already.
    """
    return np.asarray(a, dtype=np.float64)


def column_norms(W: Array) -> Array:
    """Return the norm of each column.

    Parameters
    ----------
    W : ndarray of shape (p, k)
        Directions, one in a column.

    Returns
    -------
    ndarray of shape (k,)
        1 for a zero column, so that it can be divided by.
    """
    norms = np.linalg.norm(W, axis=0)
    return np.where(norms > 0, norms, 1.0)
