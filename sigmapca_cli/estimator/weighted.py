"""Rows with weights, any numbers ≥ 0, as a source: weighted mean, covariance and axes, and rows drawn by weight."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sigmapca_cli.data.matrix.sparse import affine, part_of
from sigmapca_cli.data.moments.accumulate import Moments, refuse_lost
from sigmapca_cli.data.moments.centred_rows import stretches
from sigmapca_cli.data.source import Index, Source, as_index
from sigmapca_cli.data.standardisation import Standardisation, need_two_samples
from sigmapca_cli.system.processes import mapped

Array = np.ndarray

ENTRIES = 1 << 20
"""Entries of a block of rows."""


def checked_weights(n: int, sample_weight: Any) -> Array:
    """Return one weight for each of n rows, float64. Raise ValueError for negative, infinite or no positive ones."""
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: give one number for each row") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has the shape {weights.shape}: give one weight a row, ({n},)")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight: give finite weights that are not negative, and not all zero")
    return weights


def weighted_moments(X: Array, weights: Array) -> tuple[float, Array, Array]:
    """Return Σw, the weighted mean (p,) and the biased weighted covariance (p, p) of dense rows X (n, p)."""
    mass = float(weights.sum())
    mean = np.asarray((weights / mass) @ X, np.float64)
    second = np.zeros((len(mean), len(mean)))
    for rows in stretches(range(len(X)), max(1, ENTRIES // len(mean))):
        block = X[rows] - mean
        second += block.T @ (block * (weights[rows, None] / mass))
    return mass, mean, second


class WeightedSource(Source):
    """Rows (n, p) of positive weight, dense or of compressed rows; projections are those of the rows as they are.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        Divided by their mean.
    """

    drawing = False

    def __init__(self, X: Any, weights: Array) -> None:
        used = weights > 0
        self.name, self.X = "X", X if used.all() else X[used]
        self.n, self.p = self.X.shape
        need_two_samples(self.n, "sample_weight")
        share = weights[used] / weights[used].max()  # no overflow in the sum
        self.weights = share * (self.n / share.sum())
        self._standardise(Standardisation("none"), b"")

    def drawn(self) -> Source:
        """Return a source of n rows, row i of which is drawn anew at each call from the i-th n-th of the weights.

        Each row is drawn in proportion to its weight; of equal weights each row is drawn once.
        """
        other = copy.copy(self)
        other.drawing = True
        return other

    def _gather(self, rows: Index | slice) -> Any:
        if self.drawing:
            index = as_index(rows)
            # The same rows for the same call, whatever the thread.
            at = index + np.random.default_rng(index[:8]).random(len(index))
            rows = np.minimum(np.searchsorted(np.cumsum(self.weights), at, side="right"), self.n - 1)
        found = self.X[rows]
        return found.toarray() if issparse(found) else found

    def _raw_moments(self, diagonal: bool) -> Moments:
        with np.errstate(over="ignore", invalid="ignore"):  # `standardisation` refuses them in words
            m = self._of_stored_values() if issparse(self.X) and diagonal else self._of_all_values(diagonal)
        refuse_lost(self.X, m.second if diagonal else m.second.diagonal())
        return m

    def _of_all_values(self, diagonal: bool) -> Moments:
        if not diagonal and not issparse(self.X):
            return Moments(self.n, *weighted_moments(self.X, self.weights)[1:])
        mean = np.asarray(self.weights @ self.X, np.float64).ravel() / self.n
        second = np.zeros(self.p if diagonal else (self.p, self.p))
        for rows in stretches(range(self.n), max(1, ENTRIES // self.p)):
            block, weights = self._gather(rows) - mean, self.weights[rows, None]
            second += (np.square(block) * weights).sum(0) if diagonal else block.T @ (block * weights)
        return Moments(self.n, mean, second / self.n)

    def _of_stored_values(self) -> Moments:
        """Return mean and variances of sparse rows from the values that are stored, and the weights of the others."""
        X, mean = self.X, np.asarray(self.X.T @ self.weights).ravel() / self.n
        of_value = np.repeat(self.weights, np.diff(X.indptr))
        stored = np.bincount(X.indices, of_value, self.p)
        squares = np.bincount(X.indices, of_value * np.square(X.data - mean[X.indices]), self.p)
        return Moments(self.n, mean, (squares + (self.n - stored) * mean**2) / self.n)

    def _products(self) -> WeightedProducts:
        return WeightedProducts(self.X, self.weights, self._data_mean, self._gain())


@dataclass(frozen=True)
class WeightedProducts:
    """Products with rows √w(x − mean) ⊙ gain of a matrix X (n, p) (`centred_rows.Products`)."""

    X: Any
    weights: Array
    mean: Array
    gain: Array

    def times(self, W: Array) -> Array:
        """Return Σ w x̄(x̄ᵀW) (p, b)."""
        A = np.ascontiguousarray(self.gain[:, None] * W)

        def part(rows: slice) -> Array:
            weights = self.weights[rows, None]
            if issparse(self.X):
                block = part_of(self.X, rows)
                y = weights * (block @ A - self.mean @ A)
                return np.asarray(block.T @ y) - np.outer(self.mean, y.sum(0))
            block = self.X[rows] - self.mean
            return np.asarray(block.T @ (weights * (block @ A)))

        total = np.zeros(W.shape)
        for found in mapped(part, self._rows()):
            total += found
        return self.gain[:, None] * total

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order, without their weights."""
        A = np.ascontiguousarray(self.gain[:, None] * W)
        if issparse(self.X):
            return affine(self.X, A, self.mean @ A, 1 << 16)
        return mapped(lambda rows: (self.X[rows] - self.mean) @ A, self._rows())

    def gram(self) -> Array:
        """Return √w√wᵀ ⊙ x̄x̄ᵀ (n, n)."""
        n, p = self.X.shape
        X, G = (self.X.tocsc() if issparse(self.X) else self.X), np.zeros((n, n))
        for columns in stretches(range(p), max(1, ENTRIES // n)):
            raw = X[:, columns]
            block = (raw.toarray() if issparse(raw) else raw) - self.mean[columns]
            block *= self.gain[columns] * np.sqrt(self.weights)[:, None]
            G += block @ block.T
        return G

    def transposed(self, U: Array) -> Array:
        """Return Σ √w x̄uᵀ (p, m) for U (n, m)."""
        U = U * np.sqrt(self.weights)[:, None]
        return np.asarray(self.gain[:, None] * (self.X.T @ U - np.outer(self.mean, U.sum(0))))

    def _rows(self) -> Iterator[slice]:
        return stretches(range(self.X.shape[0]), max(1, ENTRIES // self.X.shape[1]))
