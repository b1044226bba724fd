"""Orthogonal matrices: random ones, the nearest one, and the planes in which rotations do not act on each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def random_orthonormal(p: int, k: int, seed: int) -> Matrix:
    """Return uniformly random orthonormal columns (p, k): Q of a Gaussian matrix, signed by R's diagonal."""
    Q, R = np.linalg.qr(np.random.default_rng((seed, 0x57A27)).standard_normal((p, k)))
    return np.asarray(Q * np.sign(np.diag(R)))


def nearest_orthonormal(A: Matrix) -> Matrix:
    """Return the orthonormal columns nearest to those of A (p, k), k ≤ p: the polar factor UVᵀ of A = USVᵀ."""
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray(U @ Vt)


def disjoint_pairs(k: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return all pairs i < j of k columns in k − 1 rounds (k for odd k) of disjoint pairs: a round-robin schedule."""
    size = k + k % 2
    ring, found = list(range(1, size)), []
    for _ in range(size - 1 if k > 1 else 0):
        seats = [0, *ring]
        met = [sorted(pair) for pair in zip(seats[: size // 2], seats[: size // 2 - 1 : -1], strict=True)]
        i, j = np.array([pair for pair in met if pair[1] < k], dtype=np.intp).reshape(-1, 2).T
        found.append((i, j))
        ring = ring[1:] + ring[:1]
    return found


def partners(R: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return the column of S that each column of R is matched to by |cos|, (k,); best assignment."""
    cosines = np.abs(R.T @ S)
    best = cosines.argmax(1)
    if len(np.unique(best)) == len(best):  # no assignment is better than the best of each
        return best
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-cosines)[1])


def matches(R: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return |cos| between the unit columns of R and the columns of S matched to them, (k,); best assignment."""
    return np.asarray(np.abs(R.T @ S)[np.arange(R.shape[1]), partners(R, S)])
