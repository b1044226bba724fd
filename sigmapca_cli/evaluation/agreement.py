"""Agreement of two solutions: filters matched one to one, its chance level, and the rotation between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.evaluation.matching import Array, cosines, match
from sigmapca_cli.system.errors import InputError

MATCH_THRESHOLD = 0.2
"""Entry of a rotation above which two components count as matching (paper, rotational indeterminacy)."""
TOGETHER = 1 << 18
"""Entries of random directions that are drawn at once."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of A (p, k) with B (p, l).

    mean: mean matched |cos|; per_component (k,): |cos| of each column of A, nan without a partner; partner (k,): its
    column of B, −1 without one; chance: the mean that random filters of the same sizes reach.
    """

    mean: float
    per_component: Array
    partner: NDArray[np.intp]
    chance: float


def agreement(A: ArrayLike, B: ArrayLike) -> Agreement:
    """Match the filters of A (p, k) and B (p, l) by |cos| (Hungarian); invariant to sign, scale and order.

    Raise InputError if they have different numbers of features.
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    _same_features(A, B)
    similarity = cosines(A, B)
    rows, columns = match(similarity)
    each = np.full(A.shape[1], np.nan)
    partner = np.full(A.shape[1], -1, dtype=np.intp)
    each[rows], partner[rows] = similarity[rows, columns], columns
    level = matched_cosine(len(A), A.shape[1], B.shape[1])
    return Agreement(float(similarity[rows, columns].mean()), each, partner, level)


def agreement_matrix(filters: Sequence[ArrayLike]) -> Array:
    """Return the mean matched |cos| of every two of r solutions: (r, r), symmetric, ones on the diagonal."""
    r = len(filters)
    result = np.eye(r)
    for i in range(r):
        for j in range(i + 1, r):
            result[i, j] = result[j, i] = agreement(filters[i], filters[j]).mean
    return result


def rotation_between(A: ArrayLike, B: ArrayLike) -> tuple[Array, float]:
    """Return R (k, l) of the least squares fit B ≈ A R, and the relative residual ‖B − AR‖ / ‖B‖ in [0, 1].

    A residual of 0 means that A and B span the same subspace. R then shows how much the axes in it differ, which is
    the indeterminacy of a linear autoencoder. Raise InputError if A and B have different numbers of features.
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    _same_features(A, B)
    R = np.linalg.lstsq(A, B, rcond=None)[0]
    norm = np.linalg.norm(B)
    return R, float(np.linalg.norm(B - A @ R) / norm) if norm > 0 else 0.0


def rotation_matches(R: ArrayLike, threshold: float = MATCH_THRESHOLD) -> list[list[tuple[int, float]]]:
    """Return for each column of R the rows with |R_ij| > threshold as (row, R_ij), the largest |R_ij| first."""
    R = np.asarray(R, dtype=np.float64)
    matches = []
    for column in R.T:
        rows = np.argsort(-np.abs(column), kind="stable")
        matches.append([(int(i), float(column[i])) for i in rows if abs(column[i]) > threshold])
    return matches


def _same_features(A: Array, B: Array) -> None:
    if len(A) != len(B):
        raise InputError(
            f"filters of {len(A)} and of {len(B)} features cannot be compared: give runs on the same data"
        )


@lru_cache(maxsize=64)
def matched_cosine(p: int, k: int, other: int | None = None, repeats: int | None = None) -> float:
    """Return the mean matched |cos| of two random sets of k (and `other`) directions in p dimensions.

    The directions of a set are orthonormal up to k = p. The mean is estimated from `repeats` draws with a fixed seed,
    by default more draws for fewer pairs: 0.406 for p = k = 32, 0.115 for p = 363, k = 32, 0.83 for p = k = 3. For
    |corr| with sources that were mixed into p features, p is the same number.
    """
    generator = np.random.default_rng(0)
    sizes, count = (k, other or k), repeats or max(5, 400 // k)
    at_once = max(1, TOGETHER // (p * max(sizes)))
    values = []
    for start in range(0, count, at_once):
        pairs = [
            [generator.standard_normal((p, size)) for size in sizes]
            for _ in range(min(at_once, count - start))
        ]
        for A, B in zip(*(_orthonormal(np.stack(sets)) for sets in zip(*pairs, strict=True)), strict=True):
            similarity = cosines(A, B)
            values.append(similarity[match(similarity)].mean())
    return float(np.mean(values))


def _orthonormal(sets: np.ndarray) -> np.ndarray:
    """Return sets of k directions, (m, p, k), with orthonormal columns if k ≤ p."""
    return np.linalg.qr(sets)[0] if sets.shape[2] <= sets.shape[1] else sets
