"""Planted sources and their match with what was found."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def orthonormal(p, k, seed=0):
    """Random orthonormal columns (p, k)."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, k)))[0]


def orthogonal(k, seed):
    return orthonormal(k, k, seed)


def sources(kind, n, k, group, seed=0):
    """Independent sources with std 3·0.7^(i//group), exactly uncorrelated in expectation only."""
    rng = np.random.default_rng(seed)
    heavy = rng.laplace(size=(n, k)) / np.sqrt(2)
    light = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, k))
    s = {"laplace": heavy, "uniform": light, "mixed": np.where(np.arange(k) % 2, light, heavy)}[kind]
    return s * 3 * 0.7 ** (np.arange(k) // group)


def components(S, seed=1, p=None):
    """Projections of the rotated sources on their own principal axes, and the true axes there."""
    p = p or S.shape[1]
    E = orthogonal(p, seed)[:, : S.shape[1]]
    noise = 0.05 * np.random.default_rng(seed).normal(size=(len(S), p)) if p > S.shape[1] else 0
    X = S @ E.T + noise
    X = X - X.mean(0)
    P = np.linalg.eigh(X.T @ X / len(X))[1][:, ::-1][:, : S.shape[1]]
    return X @ P, P.T @ E


def matched_each(A, B):
    """The |cos| of each column of A with a column of B, best assignment."""
    cosine = np.abs((A / np.linalg.norm(A, axis=0)).T @ (B / np.linalg.norm(B, axis=0)))
    return cosine[linear_sum_assignment(-cosine)]


def matched(A, B):
    """Their mean."""
    return matched_each(A, B).mean()
