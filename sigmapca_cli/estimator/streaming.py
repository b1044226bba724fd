"""Rows that come in parts, for `SigmaPCA.partial_fit`: exact moments of all, and a uniform sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sigmapca_cli.data.matrix.sums import MomentSource
from sigmapca_cli.data.moments.accumulate import Moments, block_moments, merge, refuse_lost
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.estimator.weighted import weighted_moments

Array = np.ndarray

STREAM_ROWS = 20_000
"""Rows kept of a stream. While no more have come, partial fits see all rows that a fit would see."""


@dataclass
class Stream:
    """What is known of the rows so far: their number, their moments, and a sample of them.

    The sample is uniform: each of the n rows is in it with the same probability (reservoir sampling). `weights` are
    those of the sample, None while all are 1. The count of `moments` is the sum of the weights.
    """

    rows: Array
    n: int = 0
    moments: Moments | None = None
    weights: Array | None = None

    @classmethod
    def of_fit(cls, X: Array, weights: Array | None, source: Any, unit: float) -> Stream:
        """Return the stream after a fit to rows X (n, p), whose source has their moments in units of `unit`."""
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        kept = slice(None) if len(X) <= STREAM_ROWS else one_per_stretch(len(X), STREAM_ROWS)
        C = np.asarray(source.covariance()[1])
        mass = len(X) if weights is None else cast(int, float(weights.sum()))
        moments = Moments(mass, source.mean, C * unit**2)
        return cls(np.array(X[kept], np.float64), len(X), moments, None if weights is None else weights[kept])

    def add(self, X: Array, weights: Array | None, generator: np.random.RandomState) -> None:
        """Take rows (m, p), with weights (m,) unless all are 1."""
        if weights is not None and self.weights is None:
            self.weights = np.ones(len(self.rows))
        if weights is None and self.weights is not None:
            weights = np.ones(len(X))
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        self.moments = merge(self.moments, _moments(X, weights))
        room = max(STREAM_ROWS - self.n, 0)
        self.rows = np.concatenate([self.rows, X[:room]])
        later = np.arange(self.n + 1, self.n + len(X) + 1)[room:]  # numbers of the other rows, counted from 1
        places = (generator.random_sample(len(later)) * later).astype(int)
        for place, row in zip(places, X[room:], strict=True):
            if place < STREAM_ROWS:
                self.rows[place] = row
        if weights is not None and self.weights is not None:
            self.weights = np.concatenate([self.weights, weights[:room]])
            for place, weight in zip(places, weights[room:], strict=True):
                if place < STREAM_ROWS:
                    self.weights[place] = weight
        self.n += len(X)

    def source(self) -> MomentSource:
        """Return the moments as a source, of which principal axes are asked."""
        assert self.moments is not None
        moments = Moments(self.n, self.moments.mean, self.moments.second)
        return MomentSource(moments, None, Standardisation("none"))


def _moments(X: Array, weights: Array | None) -> Moments:
    if weights is None:
        return block_moments(X)
    mass, mean, second = weighted_moments(X, weights)
    refuse_lost(X, second.diagonal())
    return Moments(cast(int, mass), mean, second)
