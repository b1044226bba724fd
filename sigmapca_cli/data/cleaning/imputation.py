"""Missing values replaced by their expectation under probabilistic PCA, fitted by EM to the known values."""

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import Array, principal_axes
from sigmapca_cli.data.n_components import by_mdl

TOLERANCE, MOST_ITERATIONS = 1e-4, 200


def by_ppca(X: NDArray) -> tuple[Array, int, int]:
    """Return X (n, p) with its missing values (NaN) filled, the number of components k, and of iterations.

    Expectation: each missing value and its covariance given the values of its row, by the row's pattern of missing
    values. Maximisation: C = (1/n) Σ E[(x − m)(x − m)ᵀ], then its p − k smallest eigenvalues are replaced by their
    mean, which maximises the likelihood of probabilistic PCA (Tipping and Bishop 1999, section 3.3). Features are
    scaled to unit variance for this, because the model has the same noise in all features. k: by `by_mdl`.
    """
    missing = np.isnan(X)
    centre, spread = np.nanmean(X, axis=0, dtype=np.float64), np.nanstd(X, axis=0, dtype=np.float64)
    spread = np.where(spread > 0, spread, 1.0)
    z = np.where(missing, 0.0, (X - centre) / spread)
    n, p = z.shape
    patterns, of_row = np.unique(missing, axis=0, return_inverse=True)
    rows = [np.flatnonzero(of_row.ravel() == i) for i in range(len(patterns))]
    mean, C = z.mean(axis=0), np.cov(z.T, bias=True).reshape(p, p)
    k = min(by_mdl(np.maximum(principal_axes(C)[0], 1e-9), n), max(p - 1, 1))
    iterations = 0
    while iterations < MOST_ITERATIONS:
        iterations += 1
        C = _low_rank(C, k)
        before = z[missing]
        spare = np.zeros((p, p))
        for pattern, members in zip(patterns, rows, strict=True):
            if pattern.any():
                spare += _expect(z, members, pattern, mean, C)
        mean = z.mean(axis=0)
        C = np.cov(z.T, bias=True).reshape(p, p) + spare / n
        if np.abs(z[missing] - before).max() < TOLERANCE:
            break
    filled = np.where(missing, z * spread + centre, X)
    return filled, k, iterations


def _low_rank(C: Array, k: int) -> Array:
    """Return the covariance of probabilistic PCA: k components, and one variance for the other directions."""
    values, E = principal_axes(C)
    p = len(values)
    floor = 1e-9 * max(float(values[0]), 1e-300)
    values = np.maximum(values, floor)
    noise = float(values[k:].mean()) if k < p else 0.0
    return (E * np.r_[values[:k], np.full(p - k, noise)]) @ E.T


def _expect(z: Array, members: NDArray[np.int64], pattern: NDArray[np.bool_], mean: Array, C: Array) -> Array:
    """Fill rows of one pattern in place; return the covariance of their missing values, summed over rows, (p, p)."""
    seen = ~pattern
    K = (
        np.linalg.solve(C[np.ix_(seen, seen)], C[np.ix_(seen, pattern)])
        if seen.any()
        else np.zeros((0, len(mean)))
    )
    z[np.ix_(members, pattern)] = mean[pattern] + (z[np.ix_(members, seen)] - mean[seen]) @ K
    left = np.zeros_like(C)
    left[np.ix_(pattern, pattern)] = C[np.ix_(pattern, pattern)] - C[np.ix_(pattern, seen)] @ K
    return left * len(members)
