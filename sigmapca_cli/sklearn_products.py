"""Rows for `sklearn.SigmaPCA` that are sparse, or have many features: the solvers ask for their products only."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.components import count_for
from sigmapca_cli.sources.memory import MemorySource
from sigmapca_cli.sources.options import Standardisation


class RowsByProducts:
    """Centred rows (n, p) that are sparse, or have many features: only their products `rows @ W` are asked for."""

    def __init__(self, source: Source) -> None:
        self.source, self.mean, self.shape = source, source.mean, (source.n, source.p)
        self.unit = float(source.scale[0])  # 1, but for data that float32 cannot hold

    @classmethod
    def of(cls, X: Any) -> RowsByProducts:
        """Take a dense or sparse matrix (n, p)."""
        from scipy import sparse

        from sigmapca_cli.sources.sparse import SparseSource

        try:
            if not sparse.issparse(X):
                return cls(MemorySource("X", X, Standardisation("none")))
            rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
            rows.sum_duplicates()
            rows.eliminate_zeros()
            return cls(SparseSource("X", rows, "X", Standardisation("none")))
        except InputError as error:
            raise ValueError(str(error)) from None

    def __len__(self) -> int:
        return self.source.n

    @property
    def total(self) -> float:
        """Total variance."""
        return float(self.source.covariance()[1].trace()) * self.unit**2

    def leading(self, k: int | float | str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the leading axes (p, k) and the known variances; None: all of them. Raise ValueError as `leading`."""
        if self.source.constant_features == self.source.p:
            raise ValueError("all rows are equal: there is no variance to find components of")
        try:
            count = count_for(self.source, "all" if k is None else k)
            axes = self.source.leading_axes(count)
        except InputError as error:
            raise ValueError(str(error).replace("k=", "n_components=")) from None
        if count > axes.rank:
            raise ValueError(f"n_components={count} is more than the numerical rank {axes.rank} of the data")
        return axes.up_to(count), axes.values * self.unit**2

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        return self.unit * np.concatenate(list(self.source.project(np.asarray(W, np.float64), exact=True)))
