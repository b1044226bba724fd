"""Rows that come in parts, for `SigmaPCA.partial_fit`: exact moments of all, and a uniform sample; sample weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.data.matrix.sums import MomentSource
from sigmapca_cli.data.moments.accumulate import Moments, block_moments, merge
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.subsample import one_per_stretch

Array = np.ndarray

KEPT = 20_000
"""Rows kept of a stream. While no more have come, partial fits see all rows that a fit would see."""
LARGEST = 1 << 27
"""Values that rows repeated by their weights may have: 1 GB."""


@dataclass
class Stream:
    """What is known of the rows so far: their moments, and a sample of them.

    The sample is uniform: each of the n rows is in it with the same probability (reservoir sampling).
    """

    rows: Array
    moments: Moments | None = None

    @classmethod
    def of_fit(cls, X: Array, source: Any, unit: float) -> Stream:
        """Return the stream after a fit to rows X (n, p), whose source has their moments in units of `unit`."""
        kept = X if len(X) <= KEPT else X[one_per_stretch(len(X), KEPT)]
        C = np.asarray(source.covariance()[1])
        return cls(np.array(kept, np.float64), Moments(len(X), source.mean, C * unit**2))

    def add(self, X: Array, generator: np.random.RandomState) -> None:
        """Take rows (m, p)."""
        n = 0 if self.moments is None else self.moments.n
        self.moments = merge(self.moments, block_moments(X))
        room = max(KEPT - n, 0)
        self.rows = np.concatenate([self.rows, X[:room]])
        later = np.arange(n + 1, n + len(X) + 1)[room:]  # numbers of the other rows, counted from 1
        places = (generator.random_sample(len(later)) * later).astype(int)
        for place, row in zip(places, X[room:], strict=True):
            if place < KEPT:
                self.rows[place] = row

    def source(self) -> MomentSource:
        """Return the moments as a source, of which principal axes are asked."""
        assert self.moments is not None
        return MomentSource(self.moments, None, Standardisation("none"))


def checked_weights(X: Any, sample_weight: Any) -> Array:
    """Return one weight for each row of X, float64. Raise ValueError for negative, infinite or no positive ones."""
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(X.shape[0], float(weights))
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}: give one weight a row, ({X.shape[0]},)"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight: give finite weights that are not negative, and not all zero")
    return weights


def repeated(X: Any, sample_weight: Any) -> Any:
    """Return the rows, dense or CSR, each as often as its weight says; one of weight 0 is left out.

    The solvers take means over rows, so a whole weight is a number of equal rows. Weights count up to a common factor.
    Raise ValueError for others, for weights that are negative, not finite, or all 0, and for too many rows.
    """
    weights = checked_weights(X, sample_weight)
    counts = weights / weights[weights > 0].min()
    if not (np.rint(counts) == counts).all():
        if not (np.rint(weights) == weights).all():
            raise ValueError(
                "sample_weight: give whole numbers, or equal weights, or fit with solver='independence'"
            )
        counts = weights / (np.gcd.reduce(weights.astype(np.int64)) if weights.max() < 2**53 else 1)
    if counts.sum() * X.shape[1] > max(LARGEST, X.shape[0] * X.shape[1]):
        raise ValueError(f"sample_weight: {counts.sum():.3g} rows after repetition are too many")
    return X[np.repeat(np.arange(X.shape[0]), counts.astype(int))]
