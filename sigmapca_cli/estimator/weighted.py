"""Rows with weights, any numbers ≥ 0: their weighted mean and axes, for solver="independence"."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.matrix.sums import MomentSource
from sigmapca_cli.data.moments.accumulate import Moments
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import Standardisation

Array = np.ndarray

BLOCK = 1 << 20
"""Entries of a block of rows."""


class WeightedRows:
    """Rows (n, p) of positive weight, centred on their weighted mean in products; `fitting.Rows` is without weights.

    Attributes
    ----------
    mean : ndarray of shape (p,)
        Σwx/Σw.
    weights : ndarray of shape (n,)
        Divided by their mean.
    source : Source
        Has the weighted covariance, of which axes are asked.
    """

    in_sequence = False

    def __init__(self, X: Any, weights: Array) -> None:
        used = weights > 0
        self.X = X if used.all() else X[used]
        share = weights[used] / weights[used].max()  # no overflow in the sum
        self.weights = share * (len(share) / share.sum())
        self.mean = np.asarray(self.weights @ self.X).ravel() / len(share)
        self.source = self._of_sums() if self.X.shape[1] <= WIDE else self._of_rows()

    def __len__(self) -> int:
        return len(self.weights)

    def __matmul__(self, W: Array) -> Array:
        return np.asarray(self.X @ W) - self.mean @ W if issparse(self.X) else (self.X - self.mean) @ W

    def _of_sums(self) -> Source:
        n, p = self.X.shape
        C, step = np.zeros((p, p)), max(1, BLOCK // p)
        for start in range(0, n, step):
            block = self.X[start : start + step]
            block = (block.toarray() if issparse(block) else block) - self.mean
            C += (block * self.weights[start : start + step, None]).T @ block
        return MomentSource(Moments(n, self.mean, C / n), None, Standardisation("none"))

    def _of_rows(self) -> Source:
        """Of many features: rows √w(x − mean) and their negatives, whose mean is 0, have the weighted covariance."""
        rows = np.asarray(self.X - self.mean) * np.sqrt(self.weights)[:, None]
        return MemorySource("X", np.concatenate([rows, -rows]), Standardisation("none"), content=b"")
