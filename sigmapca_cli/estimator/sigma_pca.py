"""The class of the estimator: its parameters, and what scikit-learn asks of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.estimator.fitting import Rows, fit_rows, fit_stream
from sigmapca_cli.estimator.projection import SPARSE, Projection, validated
from sigmapca_cli.estimator.settings import settings_of
from sigmapca_cli.estimator.solvers import seed_of
from sigmapca_cli.estimator.streaming import Stream
from sigmapca_cli.estimator.weighted import checked_weights
from sigmapca_cli.system.errors import InputError


class SigmaPCA(Projection, BaseEstimator):
    """Find orthonormal components by variance and independence: σ-PCA.

    Parameters
    ----------
    n_components : int, float, {"all", "mdl", "mle"} or None
        How many; None or "all" for all that have variance; a share of the variance between 0 and 1, as in
        scikit-learn's PCA; "mdl" or "mle" for a criterion (docs/data.md).
    solver : {"independence", "newton", "moments", "sgd"} or None
        "independence": the rotation of the principal axes whose components have the smallest total correlation.
        "newton": a stationary point of the paper's nonlinear PCA, by Newton steps. "moments": the maximum of a function
        of variances and fourth cumulants. All three are exact and deterministic. "sgd": stochastic training of
        nonlinear PCA, as the command line does it. None: the one that has the parameters given, else "independence".
    tau : float or "auto"
        Weight of the negentropies for "independence", ≥ 0: 1 for independent components, 0 for linear PCA. "auto" takes
        1 if the components are independent as far as the rows tell, or if halves of the rows agree better there,
        else .1.
    ordered : bool or "auto"
        Whether rows are samples in time, in their order: "independence" then tells components apart by their spectra as
        well as by variances and shapes. "auto" asks whether rows depend on their neighbours, as rows that are sorted
        by a class do not. Rows with weights, and those of `partial_fit`, have no order.
    lam : float, optional
        Weight of the cumulants for "moments", above 0; 0.1 unless given.
    a : float or "auto", optional
        Scale of the nonlinearity h(z) = a·tanh(z/a) of "newton" and "sgd", above 0: small for light tails, large for
        heavy ones. "auto", unless given, chooses it for each component.
    nonlinearity : str, optional
        Name of h, as in the group `nonlinearity` of the command line, "scaled_tanh" unless given; "newton" has a score
        for most.
    derivative : {"true", "one"}, optional
        Whether h′ is itself or 1 in the gradient; "true" unless given.
    whiten : bool
        Whether `transform` divides each component by its standard deviation.
    max_iter : int
        Iterations, or epochs of "sgd" (at least one).
    tol : float
        Converged: the largest relative residual for "newton", else the largest angle still to go, in radians
        (docs/solver.md). "sgd" has a bound of its own, an angle (docs/convergence.md).
    random_state : int, RandomState or None
        Seed of "sgd", and of the sample that `partial_fit` keeps: a number, a RandomState to draw one from, or None for
        another one at every fit. Else no randomness is used.

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
    singular_values_ : ndarray of shape (k,)
        Norms of the components of the centred training rows, σ√n.
    noise_variance_ : float
        Mean variance of the directions left out; 0 if there are none.
    n_samples_ : int
        Number of training rows, n.
    n_components_ : int
        How many components there are, k.
    mean_ : ndarray of shape (p,)
        Mean of the training rows.
    n_features_in_ : int
        Number of features, p.
    n_iter_ : int
        Iterations, or epochs of "sgd".
    a_ : ndarray of shape (k,)
        The a of each component; inf for "independence" and "moments", which have none.
    tau_ : float
        The τ of the answer; None for other solvers than "independence".
    ordered_ : bool
        Whether the rows were taken as samples in time.
    dependent_pairs_ : ndarray of int, of shape (m, 2)
        Pairs of components that are not independent, beyond chance; None for other solvers.
    negentropy_ : ndarray of shape (k,)
        Negentropy of each component as "independence" measures it, in nats; None for other solvers.
    converged_ : bool
        Whether the solver converged; False also warns.

    Notes
    -----
    "independence" minimises Σ log σ_i − τΣJ(z_i) over rotations of the principal axes, σ_i the standard deviations of
    the components, J the negentropy of z = y/σ. "newton" and "sgd" follow the gradient of E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖² to
    where it vanishes, W (p, k) orthonormal. Σ and the decoder are held constant in that gradient, so the value is not
    minimised (paper, the nonlinear PCA model). Data are centred, not scaled: put StandardScaler before it if wanted.

    References
    ----------
    F. Kanavati, L. Katsnith, M. Tsuneki (2024). σ-PCA: a building block for neural learning of identifiable linear
    transformations. TMLR.
    """

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        solver: str | None = None,
        tau: float | str = "auto",
        ordered: bool | str = "auto",
        lam: float | None = None,
        a: float | str | None = None,
        nonlinearity: str | None = None,
        derivative: str | None = None,
        whiten: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.tau = tau
        self.ordered = ordered
        self.lam = lam
        self.a = a
        self.nonlinearity = nonlinearity
        self.derivative = derivative
        self.whiten = whiten
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SigmaPCA:
        """Find the components of the rows of X.

        Parameters
        ----------
        X : array-like, table, tensor or sparse matrix of shape (n, p)
            Training rows, at least two. Sparse rows are centred in their products and never made dense.
        y : None
            Ignored; scikit-learn passes it.
        sample_weight : array-like of shape (n,), optional
            How much each row counts, ≥ 0: any numbers, of which only the ratios matter.

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
        X = validated(self, X, ensure_min_samples=2, accept_sparse=SPARSE)
        settings_of(self)
        self._stream, self._streamed = None, False
        weights = None if sample_weight is None else checked_weights(X.shape[0], sample_weight)
        try:
            rows = Rows.of(X, weights)
        except InputError as error:
            raise ValueError(str(error)) from None
        fit_rows(self, rows)
        if not issparse(X) and X.shape[1] <= WIDE:
            self._stream = Stream.of_fit(X, weights, rows.source, rows.unit)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SigmaPCA:
        """Take further rows, and find the components of all rows so far.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Further rows; at the first call at least two, and as many as there are components.
        y : None
            Ignored; scikit-learn passes it.
        sample_weight : array-like of shape (n,), optional
            How much each row counts, ≥ 0; a row without a weight counts 1.

        Returns
        -------
        SigmaPCA
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting or the data cannot be used, or nothing is known of the rows so far: after a fit to sparse rows
            or more than 2,048 features, a fit that was pickled, or `from_run`.

        Notes
        -----
        The rows so far are those of `fit`, and of each `partial_fit` since. Mean, variances and the subspace come from
        moments of all rows, exact, (p, p) in memory. The axes within the subspace come from the solver, which starts at
        the axes of before and works on a uniform sample of at most `streaming.STREAM_ROWS` rows. `fit` begins anew.
        """
        first = not hasattr(self, "components_")
        if not first and getattr(self, "_stream", None) is None:
            raise ValueError(
                "partial_fit: nothing is kept of the rows so far (a run, sparse or very wide rows, or a "
                "pickled fit): begin with partial_fit of sklearn.base.clone(model)"
            )
        X = validated(self, X, ensure_min_samples=2 if first else 1, reset=first)
        settings_of(self)
        if X.shape[1] > WIDE:
            raise ValueError(
                f"partial_fit keeps moments of at most {WIDE} features: use fit for {X.shape[1]}"
            )
        weights = None if sample_weight is None else checked_weights(len(X), sample_weight)
        stream: Any = Stream(np.zeros((0, X.shape[1]))) if first else self._stream
        if not getattr(self, "_streamed", False):
            self._draws = np.random.RandomState(seed_of(self.random_state) % 2**32)
        try:
            stream.add(X.astype(np.float64), weights, self._draws)
            fit_stream(self, stream, None if first else self.components_.T)
        except InputError as error:
            raise ValueError(str(error)) from None
        self._stream, self._streamed = stream, True
        return self

    @classmethod
    def from_run(cls, run: Any) -> SigmaPCA:
        """Return the solution of a run as a fitted estimator.

        Parameters
        ----------
        run : Run, str or PathLike
            A finished run, or its name, as commands take it.

        Returns
        -------
        SigmaPCA
            With whiten=True: its `transform` is that of the run.

        Raises
        ------
        InputError
            If the run is no orthonormal transformation of centred rows.
        """
        from sigmapca_cli.estimator.from_run import from_run
        from sigmapca_cli.storage.find import resolve
        from sigmapca_cli.storage.read import StoredRun

        filled: SigmaPCA = from_run(cls(), run if hasattr(run, "filters") else StoredRun.open(resolve(run)))
        return filled

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: of a fit no rows, of partial fits their sample too, so that they go on."""
        state = dict(super().__getstate__())
        if not state.get("_streamed", False):
            state.pop("_stream", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
