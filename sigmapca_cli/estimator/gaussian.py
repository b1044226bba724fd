"""The Gaussian of the covariance that components have, as scikit-learn's PCA offers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sigmapca_cli.estimator.projection import validated


class GaussianModel:
    """Methods of a fitted estimator with orthonormal components and a noise variance."""

    components_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float
    mean_: np.ndarray

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model.

        Returns
        -------
        ndarray of shape (p, p)
            W(Σ² − s²I)Wᵀ + s²I with s² = `noise_variance_`, as scikit-learn's PCA has it.
        """
        check_is_fitted(self)
        W, noise = self.components_.T, self.noise_variance_
        return np.asarray((W * (self.explained_variance_ - noise)) @ W.T + noise * np.eye(len(W)))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under a Gaussian with the mean and covariance of the model.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows in the units of the training rows.

        Returns
        -------
        ndarray of shape (n,)
            In nats. Comparable with `PCA.score_samples`; it does not see what is not Gaussian.

        Raises
        ------
        ValueError
            If the model has no variance in some direction: there is no density then.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False).astype(np.float64) - self.mean_
        values, vectors = np.linalg.eigh(self.get_covariance())
        if values[0] <= values[-1] * len(values) * np.finfo(float).eps:
            raise ValueError(
                "the model has no variance in some direction, and so no density: use fewer n_components"
            )
        squares = np.square(X @ vectors) / values
        return np.asarray(-0.5 * (squares.sum(axis=1) + np.log(2 * np.pi * values).sum()))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows, as `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows in the units of the training rows.
        y : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            In nats for a row.
        """
        return float(np.mean(self.score_samples(X)))
