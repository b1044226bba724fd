"""How the estimator fits: from dense rows, from products, or from a stream of parts, to its attributes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sigmapca_cli.errors import InputError
from sigmapca_cli.sklearn_products import RowsByProducts
from sigmapca_cli.sklearn_solvers import (
    SOLVERS,
    Model,
    leading,
    leading_of_covariance,
    turned_to,
    warn_of_owners,
)
from sigmapca_cli.sklearn_stream import Stream
from sigmapca_cli.sources.components import count_of


class Fitting(Model):
    """The steps of `fit` and `partial_fit` of `sklearn.SigmaPCA`, which has the parameters, after their checks."""

    n_components: int | float | str | None
    solver: str
    whiten: bool
    mean_: np.ndarray
    components_: np.ndarray
    sigma_: np.ndarray
    _stream: Stream
    _draws: np.random.RandomState

    def _fit_dense(self, X: np.ndarray) -> None:
        self.mean_ = X.mean(axis=0, dtype=np.float64)
        centred = X.astype(np.float64) - self.mean_
        k = self._count(X.shape)
        P, values = leading(centred, k if isinstance(k, int) else None)
        if not (k is None or isinstance(k, int)):
            P = P[:, : count_of(k, values, len(X))]
        warn_of_owners(centred, P, values)
        W = self._solve(centred, P, None)
        self._store(W, (centred @ W).std(axis=0), float(np.mean(np.sum(centred**2, axis=1))), len(X))

    def _fit_by_products(self, rows: RowsByProducts) -> None:
        self.mean_ = rows.mean
        P, _ = rows.leading(self._count(rows.shape))
        W = self._solve(rows, P, None)
        self._store(W, (rows @ W).std(axis=0), rows.total, len(rows))

    def _fit_stream(self, X: np.ndarray, first: bool) -> None:
        stream, before = self._stream, None if first else self.components_.T
        stream.add(X.astype(np.float64), self._draws)
        self.mean_ = stream.mean
        k = self._count((stream.n, X.shape[1]))
        P, values = leading_of_covariance(stream.covariance, k if isinstance(k, int) else None, stream.n)
        if not (k is None or isinstance(k, int)):
            P = P[:, : count_of(k, values, stream.n)]
        W = self._solve(stream.rows - stream.mean, P, turned_to(P, before))
        sigma = np.sqrt(np.einsum("pk,pk->k", W, stream.covariance @ W))
        self._store(W, sigma, float(np.trace(stream.covariance)), stream.n)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _divisor(self) -> np.ndarray | float:
        return np.where(self.sigma_ > 0, self.sigma_, 1.0) if self.whiten else 1.0

    def _count(self, shape: tuple[int, int]) -> int | float | str | None:
        k = self.n_components
        if k is None:
            return None
        if isinstance(k, str) and k in ("all", "mdl", "mle"):
            return k
        if isinstance(k, float) and 0 < k < 1:
            return float(k)
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(
                f"n_components={k!r}: give a whole number from 1 on, a share below 1, all, mdl, mle or None"
            )
        if k > min(shape):
            raise ValueError(f"n_components={k} is more than min(n_samples, n_features)={min(shape)}")
        return int(k)

    def _check_solver(self) -> None:
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r}: choose from {', '.join(SOLVERS)}")

    def _solve(self, centred: Any, P: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        try:
            W = SOLVERS[self.solver](self, centred, P, start)
        except InputError as error:
            raise ValueError(str(error)) from None
        if not self.converged_:
            warnings.warn(
                f"SigmaPCA did not converge in {self.n_iter_} iterations: raise max_iter, or try another a",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W

    def _store(self, W: np.ndarray, sigma: np.ndarray, total: float, n: int) -> None:
        from sigmapca_cli.methods.solution import signed

        order = np.argsort(-sigma, kind="stable")
        W, sigma, self.a_ = W[:, order], sigma[order], np.asarray(self.a_)[order]
        (p, k), self.n_samples_ = W.shape, n
        self.n_components_ = k
        self.components_ = np.ascontiguousarray((W * signed(W)).T)
        self.sigma_, self.explained_variance_ = sigma, sigma**2
        self.explained_variance_ratio_ = sigma**2 / total if total > 0 else np.zeros_like(sigma)
        self.singular_values_ = sigma * np.sqrt(n)
        rest = min(n, p) - k
        self.noise_variance_ = max(total - float(np.sum(sigma**2)), 0.0) / rest if rest > 0 else 0.0

    def _decoder(self) -> np.ndarray:
        W = self.components_
        if np.allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=1e-9):
            return W
        return np.asarray(np.linalg.pinv(W.T))  # of a run whose filters are orthonormal only nearly
