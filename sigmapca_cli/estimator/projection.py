"""What a fitted `SigmaPCA` does with rows: components, their inverse, the certificate, a Gaussian of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sigmapca_cli.data.matrix.in_rows import plain_form
from sigmapca_cli.estimator.settings import settings_of
from sigmapca_cli.estimator.weighted import checked_weights
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.evaluation.certificate import Certificate

SPARSE = ["csr", "csc", "coo"]


def validated(model: Any, X: Any, **options: Any) -> Any:
    """Return rows X as scikit-learn checks them, float32 or float64; tensors and lazy tables are made arrays first.

    Raise ValueError for what cannot be used.
    """
    try:
        X = plain_form(X, "X")
    except InputError as error:
        raise ValueError(str(error)) from None
    return validate_data(model, X, dtype=[np.float64, np.float32], **options)


class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted estimator that apply its components to rows."""

    components_: np.ndarray
    mean_: np.ndarray
    sigma_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float
    a_: np.ndarray
    tau_: float | None
    ordered_: bool
    whiten: bool

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows in the units of the training rows.

        Returns
        -------
        ndarray of shape (n, k)
            (X − mean_) @ components_.T, divided by `sigma_` with whiten=True; in the float type of X.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse=SPARSE)
        Y = self._components(X)
        return (Y / self._divisor()).astype(X.dtype)

    def inverse_transform(self, Y: Any) -> np.ndarray:
        """Return the rows that components stand for.

        Parameters
        ----------
        Y : array-like of shape (n, k)
            Components, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, p)
            The orthogonal projections of the original rows on the components.

        Raises
        ------
        ValueError
            If Y does not have k columns, or is sparse.
        """
        check_is_fitted(self)
        if issparse(Y):
            raise ValueError("inverse_transform takes dense components: give Y.toarray()")
        Y = np.asarray(plain_form(Y, "Y"))
        if Y.dtype.kind not in "biuf":
            try:
                Y = Y.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    "inverse_transform takes numbers: give components as `transform` does"
                ) from None
        if Y.ndim != 2 or Y.shape[1] != len(self.components_):
            raise ValueError(f"expected components of shape (n, {len(self.components_)}), got {Y.shape}")
        X = (Y * self._divisor()) @ self._decoder() + self.mean_
        return X.astype(Y.dtype if Y.dtype == np.float32 else np.float64)

    def certificate(self, X: Any, level: float = 0.05, sample_weight: Any = None) -> Certificate:
        """Return which components the data identify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            The training rows.
        level : float
            Error rate at which an arbitrary pair may be called identified.
        sample_weight : array-like of shape (n,), optional
            How much each row counts, as in `fit`.

        Returns
        -------
        evaluation.identifiability.Certificate
            Curvature, angle and verdict of every pair; `evaluation.words.explain` puts it in sentences.

        Raises
        ------
        ValueError
            As for `fit` and `transform`.
        """
        from sigmapca_cli.estimator.fitting import Rows
        from sigmapca_cli.evaluation.certify import cut_by

        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse=SPARSE, ensure_min_samples=2)
        weights = None if sample_weight is None else checked_weights(X.shape[0], sample_weight)
        if weights is not None:
            X, weights = (X.tocsr() if issparse(X) else X)[weights > 0], weights[weights > 0]
        rows, Y = Rows.of(X, weights), self._components(X)
        weights = rows.weights
        if weights is None and rows.source.copies is not None:
            first, weights = rows.source.copies.distinct()
            Y = Y[first]
        found = self._certificate(Y, level, weights)
        cut = cut_by(rows.source, Y / rows.unit, weights)
        return replace(found, cut=cut, converged=bool(self.converged_))

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

    def _certificate(self, Y: np.ndarray, level: float, weights: np.ndarray | None) -> Certificate:
        settings = settings_of(self)
        if settings.solver == "independence" and self.tau_ is not None:
            from sigmapca_cli.evaluation.independence import certify_independence
            from sigmapca_cli.solvers.independence.spectra import are_long_enough, spectra_of

            in_time = self.ordered_ and weights is None and Y.shape[1] > 1
            spectra = spectra_of(Y) if in_time and are_long_enough((), len(Y)) else None
            ordered = None if settings.ordered is None else self.ordered_
            return certify_independence(
                Y, self.tau_, level, ordered=ordered, spectra=spectra, weights=weights
            )
        from sigmapca_cli.data.row_order import order_of

        ordered = order_of(Y).ordered
        if settings.solver == "moments":
            from sigmapca_cli.evaluation.fourth import certify_fourth

            return certify_fourth(Y, settings.lam, level, weights, ordered)
        from sigmapca_cli.evaluation.identifiability import certify

        return certify(
            Y, settings.nonlinearity, settings.derivative, self.a_, level, weights=weights, ordered=ordered
        )

    def _components(self, X: Any) -> np.ndarray:
        """Return (X − mean)·W in float64; sparse rows are not filled."""
        if issparse(X):
            return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T
        return np.asarray((X.astype(np.float64) - self.mean_) @ self.components_.T)

    def _divisor(self) -> np.ndarray | float:
        return np.where(self.sigma_ > 0, self.sigma_, 1.0) if self.whiten else 1.0

    def _decoder(self) -> np.ndarray:
        W = self.components_
        if np.allclose(W @ W.T, np.eye(len(W)), rtol=0, atol=1e-9):
            return W
        return np.asarray(np.linalg.pinv(W.T))  # of a run whose filters are orthonormal only nearly

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
