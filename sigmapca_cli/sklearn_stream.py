"""Rows that come in parts, for `SigmaPCA.partial_fit`: exact moments of all, and a uniform sample; sample weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray

KEPT = 20_000
"""Rows kept of a stream. While no more have come, partial fits see all rows that a fit would see."""
LARGEST = 2_000_000_000
"""Values that rows repeated by their weights may have."""


@dataclass
class Stream:
    """What is known of the rows so far: n, their mean (p,) and sum of squares about it (p, p), and a sample of them.

    The sample is uniform: each of the n rows is in it with the same probability (reservoir sampling).
    """

    mean: Array
    second: Array
    rows: Array
    n: int = 0

    @classmethod
    def of_width(cls, p: int) -> Stream:
        """Return the stream before its first rows."""
        return cls(np.zeros(p), np.zeros((p, p)), np.zeros((0, p)))

    def add(self, X: Array, generator: np.random.RandomState) -> None:
        """Take rows (m, p)."""
        own, m = X.mean(axis=0), len(X)
        shift, total, centred = own - self.mean, self.n + m, X - X.mean(axis=0)
        self.second = self.second + centred.T @ centred + np.outer(shift, shift) * (self.n * m / total)
        self.mean = self.mean + shift * (m / total)
        room = max(KEPT - self.n, 0)
        self.rows = np.concatenate([self.rows, X[:room]])
        later = np.arange(self.n + 1, total + 1)[room:]  # numbers of the other rows, counted from 1
        places = (generator.random_sample(len(later)) * later).astype(int)
        for place, row in zip(places, X[room:], strict=True):
            if place < KEPT:
                self.rows[place] = row
        self.n = total

    @property
    def covariance(self) -> Array:
        """Return the covariance (p, p) of all rows, divided by n."""
        return np.asarray(self.second / self.n)


def repeated(X: Any, sample_weight: Any) -> Any:
    """Return the rows, dense or CSR, each as often as its weight says; one of weight 0 is left out.

    The solvers take means over rows, so a whole weight is a number of equal rows. Weights count up to a common factor.
    Raise ValueError for others, and for weights that are negative, not finite, or all 0.
    """
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(X.shape[0], float(weights))
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}: give one weight a row, ({X.shape[0]},)"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight: give finite weights that are not negative, and not all zero")
    counts = weights / weights[weights > 0].min()
    if not (whole := np.rint(counts) == counts).all():
        counts = weights
        whole = np.rint(counts) == counts
    if not whole.all():
        raise ValueError("sample_weight: give whole numbers, or equal weights: a solver counts rows")
    if counts.sum() * X.shape[1] > LARGEST:
        raise ValueError(f"sample_weight: {counts.sum():.3g} rows after repetition are too many")
    return X[np.repeat(np.arange(X.shape[0]), counts.astype(int))]
