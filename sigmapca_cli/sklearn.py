"""σ-PCA as a scikit-learn estimator: `from sigmapca_cli.sklearn import SigmaPCA`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from sigmapca_cli.errors import InputError
from sigmapca_cli.sklearn_solvers import SOLVERS, RowsByProducts, leading, warn_of_owners
from sigmapca_cli.sources.components import count_of
from sigmapca_cli.sources.implicit import WIDE

if TYPE_CHECKING:
    from sigmapca_cli.evaluation.identifiability import Certificate


class SigmaPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find orthonormal components by variance and independence: nonlinear PCA with σ.

    Parameters
    ----------
    n_components : int, float, {"all", "mdl", "mle"} or None
        How many; None or "all" for all that have variance; a share of the variance between 0 and 1, as in
        scikit-learn's PCA; "mdl" or "mle" for a criterion (docs/data.md).
    solver : {"newton", "moments", "sgd"}
        Newton steps, exact and deterministic; the maximum of a function of variances and fourth cumulants, as exact and
        deterministic, without an a; or stochastic training, as the command line does it.
    lam : float
        Weight of the cumulants for "moments", above 0.
    a : float or "auto"
        Scale of the nonlinearity h(z) = a·tanh(z/a), above 0: small for light tails, large for heavy ones. "auto"
        ("newton" only) chooses it for each component.
    nonlinearity : str
        Name of h, as in the group `nonlinearity` of the command line; "newton" has a score for most.
    derivative : {"true", "one"}
        Whether h′ is itself or 1 in the gradient.
    whiten : bool
        Whether `transform` divides each component by its standard deviation.
    max_iter : int
        Iterations of "newton" and "moments", or epochs of "sgd" (at least one).
    tol : float
        Converged: the largest relative residual for "newton", the largest angle still to go, in radians, for "moments"
        (docs/solver.md). "sgd" has a bound of its own, an angle (docs/convergence.md).
    random_state : int, RandomState or None
        Seed of "sgd": a number, a RandomState to draw one from, or None for another one at every fit. The others use no
        randomness.

    Attributes
    ----------
    components_ : ndarray of shape (k, p)
        Filters as rows, by decreasing variance; the entry of largest absolute value of each is positive.
    sigma_ : ndarray of shape (k,)
        Standard deviations of the components on the training data (biased: divided by n).
    explained_variance_ : ndarray of shape (k,)
        Square of `sigma_`.
    explained_variance_ratio_ : ndarray of shape (k,)
        Its share of the total variance.
    n_components_ : int
        How many components there are, k.
    mean_ : ndarray of shape (p,)
        Mean of the training rows.
    n_features_in_ : int
        Number of features, p.
    n_iter_ : int
        Iterations, or epochs of "sgd".
    a_ : ndarray of shape (k,)
        The a of each component; inf for "moments".
    converged_ : bool
        Whether the solver converged; False also warns.

    Notes
    -----
    The gradient of E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖² is followed to where it vanishes, W (p, k) orthonormal, Σ the standard
    deviations of xW. Σ and the decoder are held constant in the gradient, so the value itself is not what is
    minimised (paper, the nonlinear PCA model). Data are centred, not scaled: put StandardScaler before it if wanted.

    References
    ----------
    F. Kanavati, L. Katsnith, M. Tsuneki (2024). σ-PCA: a building block for neural learning of identifiable linear
    transformations. TMLR.
    """

    a_: np.ndarray
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        solver: str = "newton",
        lam: float = 0.1,
        a: float | str = "auto",
        nonlinearity: str = "scaled_tanh",
        derivative: str = "true",
        whiten: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.lam = lam
        self.a = a
        self.nonlinearity = nonlinearity
        self.derivative = derivative
        self.whiten = whiten
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SigmaPCA:
        """Find the components of the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Training rows, at least two. Sparse rows are centred in their products and never made dense.
        y : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        SigmaPCA
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting or the data cannot be used.

        Notes
        -----
        A fit that did not converge warns (ConvergenceWarning), and so do a few rows that hold most of a component.
        """
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=2, accept_sparse=["csr", "csc", "coo"]
        )
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r}: choose from {', '.join(SOLVERS)}")
        k = self._count(X.shape)
        if issparse(X) or X.shape[1] > WIDE:
            centred: Any = RowsByProducts.of(X)
            self.mean_ = centred.mean
            P, values = centred.leading(k)
        else:
            self.mean_ = X.mean(axis=0, dtype=np.float64)
            centred = X.astype(np.float64) - self.mean_
            P, values = leading(centred, k if isinstance(k, int) else None)
            if not (k is None or isinstance(k, int)):
                P = P[:, : count_of(k, values, len(X))]
            warn_of_owners(centred, P, values)
        try:
            W = SOLVERS[self.solver](self, centred, P)
        except InputError as error:
            raise ValueError(str(error)) from None
        self._store(W, centred)
        if not self.converged_:
            warnings.warn(
                f"SigmaPCA did not converge in {self.n_iter_} iterations: raise max_iter, or try another a",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

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
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], reset=False, accept_sparse=["csr", "csc", "coo"]
        )
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
            If Y does not have k columns.
        """
        check_is_fitted(self)
        Y = np.asarray(Y)
        if Y.ndim != 2 or Y.shape[1] != len(self.components_):
            raise ValueError(f"expected components of shape (n, {len(self.components_)}), got {Y.shape}")
        X = (Y * self._divisor()) @ self.components_ + self.mean_
        return X.astype(Y.dtype if Y.dtype == np.float32 else np.float64)

    def certificate(self, X: Any, level: float = 0.05) -> Certificate:
        """Return which components the data identify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            The training rows.
        level : float
            Error rate at which an arbitrary pair may be called identified.

        Returns
        -------
        evaluation.identifiability.Certificate
            Curvature, angle and verdict of every pair; `evaluation.words.explain` puts it in sentences.
        """
        from sigmapca_cli.evaluation.identifiability import certify

        check_is_fitted(self)
        Y = self._components(X if issparse(X) else np.asarray(X))
        if self.solver == "moments":
            from sigmapca_cli.evaluation.fourth import certify_fourth

            return certify_fourth(Y, self.lam, level)
        return certify(Y, self.nonlinearity, self.derivative, self.a_, level)

    def _components(self, X: Any) -> np.ndarray:
        """Return (X − mean)·W in float64; sparse rows are not filled."""
        if issparse(X):
            return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T
        return np.asarray((X.astype(np.float64) - self.mean_) @ self.components_.T)

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

    def _store(self, W: np.ndarray, centred: Any) -> None:
        from sigmapca_cli.methods.solution import signed

        sigma = (centred @ W).std(axis=0)
        order = np.argsort(-sigma, kind="stable")
        W, sigma, self.a_ = W[:, order], sigma[order], np.asarray(self.a_)[order]
        self.n_components_ = W.shape[1]
        self.components_ = np.ascontiguousarray((W * signed(W)).T)
        self.sigma_ = sigma
        self.explained_variance_ = sigma**2
        implicit = isinstance(centred, RowsByProducts)
        total = centred.total if implicit else float(np.mean(np.sum(centred**2, axis=1)))
        self.explained_variance_ratio_ = sigma**2 / total if total > 0 else np.zeros_like(sigma)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
