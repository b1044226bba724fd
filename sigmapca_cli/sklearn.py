"""σ-PCA as a scikit-learn estimator: `from sigmapca_cli.sklearn import SigmaPCA`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.components import count_of
from sigmapca_cli.sources.owners import in_words, owned_components
from sigmapca_cli.sources.statistics import rank_of

if TYPE_CHECKING:
    from sigmapca_cli.evaluation.identifiability import Certificate


class SigmaPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Nonlinear PCA with σ: orthonormal components, identified where linear PCA's are arbitrary.

    Follows the gradient of E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖², h(z) = a·tanh(z/a), to where it vanishes, W (p, k) orthonormal,
    Σ the standard deviations of xW; Σ and the decoder are held constant in the gradient, so the value itself is not
    what is minimised (paper, the nonlinear PCA model). Data is centred, not scaled: put
    StandardScaler before it if wanted.

    Parameters
    ----------
    n_components : number of components; None or "all" for all that have variance; a share of the variance between 0
    and 1, as in scikit-learn's PCA; "mdl" or "mle" for a criterion (docs/data.md).
    solver : "newton", exact and deterministic (the default); "moments", the maximum of a function of variances
    and fourth cumulants, as exact and deterministic, without an a; or "sgd", stochastic training as the command
    line does it. lam : weight of the cumulants for "moments". a : scale of the nonlinearity, or "auto"
    (newton): small for light tails, large for heavy ones, per component. nonlinearity, derivative : as in the
    command line's nonlinearity group; newton has a score for most. whiten : whether `transform` divides each
    component by its standard deviation. max_iter : iterations of "newton" and "moments", or epochs of "sgd" (at
    least one). tol : largest relative residual at which "newton" has converged, largest angle still to go, in
    radians, for "moments" (docs/solver.md); "sgd" has a bound of its own, an angle (docs/convergence.md).
    random_state : seed of "sgd", a RandomState to draw one from, or None for another one at every fit; the
    others use no randomness.

    Attributes
    ----------
    components_ (k, p): the filters as rows, by decreasing variance, the entry of largest |value| of each
    positive. sigma_ (k,): standard deviations of the components on the training data (biased: divided by n).
    explained_variance_ (k,), explained_variance_ratio_ (k,): sigma_² and its share of the total variance.
    n_components_: how many there are. mean_ (p,), n_features_in_, n_iter_, a_ (k,): the a of each component
    ("moments": inf). converged_: False also warns.
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
        """Find the components of X (n, p); ValueError for settings or data that cannot be used."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r}: choose from {', '.join(SOLVERS)}")
        self.mean_ = X.mean(axis=0, dtype=np.float64)
        centred = X.astype(np.float64) - self.mean_
        k = self._count(X.shape)
        P, values = _leading(centred, k if isinstance(k, int) else None)
        if not (k is None or isinstance(k, int)):
            P = P[:, : count_of(k, values, len(X))]
        _warn_of_owners(centred, P, values)
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
        """Components (n, k) of X (n, p), in the float type of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        Y = (X.astype(np.float64) - self.mean_) @ self.components_.T
        return (Y / self._divisor()).astype(X.dtype)

    def inverse_transform(self, Y: Any) -> np.ndarray:
        """Rows (n, p) from components (n, k): the orthogonal projection of the original rows on the
        components.
        """
        check_is_fitted(self)
        Y = np.asarray(Y)
        if Y.ndim != 2 or Y.shape[1] != len(self.components_):
            raise ValueError(f"expected components of shape (n, {len(self.components_)}), got {Y.shape}")
        X = (Y * self._divisor()) @ self.components_ + self.mean_
        return X.astype(Y.dtype if Y.dtype == np.float32 else np.float64)

    def certificate(self, X: Any, level: float = 0.05) -> Certificate:
        """Which components are identified, from the training rows X: see `evaluation.identifiability`.

        `evaluation.words.explain` puts it in sentences.
        """
        from sigmapca_cli.evaluation.identifiability import certify

        check_is_fitted(self)
        Y = (np.asarray(X, dtype=np.float64) - self.mean_) @ self.components_.T
        if self.solver == "moments":
            from sigmapca_cli.evaluation.fourth import certify_fourth

            return certify_fourth(Y, self.lam, level)
        return certify(Y, self.nonlinearity, self.derivative, self.a_, level)

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

    def _store(self, W: np.ndarray, centred: np.ndarray) -> None:
        from sigmapca_cli.methods.solution import signed

        sigma = (centred @ W).std(axis=0)
        order = np.argsort(-sigma, kind="stable")
        W, sigma, self.a_ = W[:, order], sigma[order], np.asarray(self.a_)[order]
        self.n_components_ = W.shape[1]
        self.components_ = np.ascontiguousarray((W * signed(W)).T)
        self.sigma_ = sigma
        self.explained_variance_ = sigma**2
        total = float(np.mean(np.sum(centred**2, axis=1)))
        self.explained_variance_ratio_ = sigma**2 / total if total > 0 else np.zeros_like(sigma)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _leading(centred: np.ndarray, k: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The leading k principal axes (p, k), and all variances; k None for those that have variance."""
    n, p = centred.shape
    if p <= n:
        values, vectors = np.linalg.eigh(centred.T @ centred / n)
        values, vectors = values[::-1], vectors[:, ::-1]
    else:
        _, s, vt = np.linalg.svd(centred, full_matrices=False)
        values, vectors = s**2 / n, vt.T
    rank = rank_of(values)
    if rank == 0:
        raise ValueError("all rows are equal: there is no variance to find components of")
    if k is not None and k > rank:
        raise ValueError(f"n_components={k} is more than the numerical rank {rank} of the data")
    return vectors[:, : k or rank], values


def _warn_of_owners(centred: np.ndarray, P: np.ndarray, values: np.ndarray) -> None:
    """A UserWarning where a few rows hold most of a principal component."""
    n = len(centred)
    blocks = (centred[start : start + 8192] for start in range(0, n, 8192))
    if owned := owned_components(blocks, P, values[: P.shape[1]], n, float(values.sum())):
        warnings.warn(in_words(owned, "row {}".format).split(", or add")[0], UserWarning, stacklevel=3)


def _newton(model: SigmaPCA, centred: np.ndarray, P: np.ndarray) -> np.ndarray:
    """W = P R by Newton steps on the rotation group."""
    from sigmapca_cli.solvers.newton import solve

    if P.shape[1] == 1:
        # One axis has nothing to turn against: it is the principal one, whatever a.
        model.n_iter_, model.converged_, model.a_ = 1, True, np.array([_one_a(model, centred @ P)])
        return P
    result = solve(
        centred @ P,
        a=model.a,
        nonlinearity=model.nonlinearity,
        derivative=model.derivative,
        tol=model.tol,
        max_iter=model.max_iter,
    )
    model.n_iter_, model.converged_, model.a_ = result.iterations, result.converged, result.a
    return P @ result.R


def _moments(model: SigmaPCA, centred: np.ndarray, P: np.ndarray) -> np.ndarray:
    """W = P R at the maximum of F over rotations R."""
    from sigmapca_cli.solvers.maximum import maximise

    k = P.shape[1]
    model.n_iter_, model.converged_, model.a_ = 1, True, np.full(k, np.inf)
    if k == 1:
        return P
    result = maximise(centred @ P, model.lam, tol=model.tol, max_iter=model.max_iter)
    model.n_iter_, model.converged_ = result.iterations, result.converged
    return P @ result.R


def _one_a(model: SigmaPCA, y: np.ndarray) -> float:
    """The a of a single component: the one given, or by the sign of its kurtosis."""
    from sigmapca_cli.evaluation.metrics import kurtosis

    if model.a == "auto":
        return 3.0 if kurtosis(y)[0] > 0 else 0.8
    if isinstance(model.a, str) or not model.a > 0:
        raise InputError(f"a={model.a!r}: must be a positive number, or auto")
    return float(model.a)


def _sgd(model: SigmaPCA, centred: np.ndarray, P: np.ndarray) -> np.ndarray:
    """W by stochastic training on tangent gradients, started at the principal axes P."""
    from sigmapca_cli.config import Config
    from sigmapca_cli.methods.config import NonlinearityConfig
    from sigmapca_cli.processes import blas, pick_threads
    from sigmapca_cli.runner import choose, stochastic
    from sigmapca_cli.sources.base import MemorySource, Standardisation
    from sigmapca_cli.training import loop
    from sigmapca_cli.training.arrays import as_numpy

    if model.a == "auto":
        raise InputError('solver="sgd" needs a number for a, such as 4.0 (heavy tails) or 0.8 (light tails)')
    n, k = len(centred), P.shape[1]
    cfg = Config(a=model.a, k=k, seed=seed_of(model.random_state), epochs=model.max_iter, device="cpu")
    cfg.batch_size, cfg.rescale = min(128, n), True
    cfg.nonlinearity = NonlinearityConfig(model.nonlinearity, cfg.a, derivative=model.derivative)
    source = MemorySource("array", centred, Standardisation("none"))
    source.in_memory = False  # somebody else's process is not to be forked
    method = choose.method_of(cfg)
    trainer = stochastic.make_trainer(cfg, method, source, "cpu")
    with blas(pick_threads(None, cfg.batch_size * source.p * k)):
        loop.train([trainer])
        model.converged_ = stochastic.convergence_of(trainer).converged(cfg.tol)
    model.n_iter_ = model.max_iter
    model.a_ = np.full(k, float(model.a))
    # Training keeps the columns only nearly orthogonal; the nearest orthonormal W makes the inverse exact.
    U, _, Vt = np.linalg.svd(as_numpy(trainer.state["W"]).astype(np.float64), full_matrices=False)
    return U @ Vt


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state: an int is itself, None and a RandomState are drawn from."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


SOLVERS = {"newton": _newton, "moments": _moments, "sgd": _sgd}
