"""How the estimator fits: from rows, or from moments and a sample of rows, to its attributes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sigmapca_cli.data.cleaning.outliers import in_words, owners_of
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.moments.accumulate import Moments
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.n_components import count_for
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.estimator.from_run import describe
from sigmapca_cli.estimator.settings import BELONGS, settings_of
from sigmapca_cli.estimator.solvers import FITS, Found, turned_to
from sigmapca_cli.estimator.weighted import WeightedSource
from sigmapca_cli.system.errors import InputError


class HeldSource(MemorySource):
    """A matrix (n, p) of a program. Up to `WIDE` features its variances are those of its covariance: one pass for both.

    Nobody asks for the hash of the data, so its content is not read for one.
    """

    _held: Moments | None = None

    def __init__(self, X: np.ndarray) -> None:
        super().__init__("X", X, Standardisation("none"), content=b"")

    def _raw_moments(self, diagonal: bool) -> Moments:
        if self.p > WIDE:
            return super()._raw_moments(diagonal)
        if self._held is None:
            self._held = super()._raw_moments(diagonal=False)
        m = self._held
        return Moments(m.n, m.mean, m.second.diagonal().copy()) if diagonal else m


class Rows:
    """Centred rows (n, p) of a source in memory, of which the solvers ask for products `rows @ W` only."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.weights: np.ndarray | None = getattr(source, "weights", None)
        self.in_sequence = self.weights is None
        self.unit = float(source.scale[0])  # 1, but for data that float32 cannot hold
        self._projected: tuple[np.ndarray, np.ndarray] | None = None  # axes, and the rows on them

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None = None) -> Rows:
        """Take a dense or sparse matrix (n, p), with weights (n,). Raise InputError for values that cannot be used."""
        from scipy import sparse

        from sigmapca_cli.data.matrix.sparse import SparseSource

        if sparse.issparse(X):
            X = sparse.csr_matrix(X, dtype=np.float64, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
        if weights is not None:
            return cls(WeightedSource(X, weights))
        if sparse.issparse(X):
            return cls(SparseSource("X", X, "X", Standardisation("none")))
        return cls(HeldSource(X))

    def __len__(self) -> int:
        return self.source.n

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        if self._projected is not None and self._projected[0] is W:
            return self._projected[1]
        return self.unit * np.concatenate(list(self.source.project(np.asarray(W, np.float64), exact=True)))

    def project(self, P: np.ndarray) -> np.ndarray:
        """Return the rows on axes P (p, k), (n, k); they are kept, and what asks again passes over no row."""
        self._projected = P, self @ P
        return self._projected[1]

    def deviations(self, W: np.ndarray) -> np.ndarray:
        """Return the standard deviations (k,) on filters W (p, k); a rotation of the axes passes over no row."""
        P, Y = self._projected or (W, self @ W)
        R = P.T @ W
        Y = Y @ R if np.allclose(P @ R, W, rtol=0, atol=1e-12) else self @ W
        if self.weights is None:
            return np.asarray(Y.std(axis=0))
        return np.asarray(np.sqrt(np.average(np.square(Y), axis=0, weights=self.weights)))

    @property
    def total(self) -> float:
        """Total variance."""
        return float(self.source.covariance()[1].trace()) * self.unit**2

    def leading(self, k: int | float | str | None) -> np.ndarray:
        """Return the leading axes (p, k'), where k says how many as `count_for` has it; None: all with variance.

        Raise ValueError if there is no variance, or fewer axes of it.
        """
        if self.source.constant_features == self.source.p:
            raise ValueError("all rows are equal: there is no variance to find components of")
        try:
            count = count_for(self.source, "all" if k is None else k)
            axes = self.source.leading_axes(count)
        except InputError as error:
            raise ValueError(str(error).replace("k=", "n_components=")) from None
        if count > axes.rank:
            raise ValueError(f"n_components={count} is more than the numerical rank {axes.rank} of the data")
        return axes.up_to(count)


class CentredSample:
    """A sample of rows, as `Rows` has all of them: centred on the mean of all rows, not on its own."""

    in_sequence = False

    def __init__(self, X: np.ndarray, mean: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.centred, self.weights = X - mean, weights

    @property
    def source(self) -> Source:
        """The sample as a source."""
        return Rows.of(self.centred, self.weights).source

    def __len__(self) -> int:
        return len(self.centred)

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        return np.asarray(self.centred @ W)


def fit_rows(model: Any, rows: Rows) -> None:
    """Fit to all rows, and warn if a few of them hold most of a component."""
    model.mean_ = rows.source.mean
    P = rows.leading(count_asked(model.n_components, (rows.source.n, rows.source.p)))
    Y = rows.project(P)
    if rows.weights is None and (owned := owners_of(rows.source, Y / rows.unit)):
        warnings.warn(in_words(owned, "row {}".format).split(", or add")[0], UserWarning, stacklevel=3)
    found = solved(model, rows, P, None)
    store(model, found, rows.deviations(found.W), rows.total, len(rows))


def fit_stream(model: Any, stream: Any, before: np.ndarray | None) -> None:
    """Fit to the moments of all rows and a sample of them, starting at the filters (p, k) of before."""
    moments = Rows(stream.source())
    model.mean_, n = stream.moments.mean, stream.n
    P = moments.leading(count_asked(model.n_components, (n, len(model.mean_))))
    found = solved(model, CentredSample(stream.rows, model.mean_, stream.weights), P, turned_to(P, before))
    sigma = np.sqrt(np.einsum("pk,pk->k", found.W, stream.moments.second @ found.W))
    store(model, found, sigma, moments.total, n)


def count_asked(k: Any, shape: tuple[int, int]) -> int | float | str | None:
    """Return `n_components` as `count_for` takes it. Raise ValueError for what is no number of components."""
    if k is None or (isinstance(k, str) and k in ("all", "mdl", "mle")):
        return k
    if isinstance(k, float | np.floating) and 0 < k < 1:
        return float(k)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(
            f"n_components={k!r}: give a whole number from 1 on, a share below 1, all, mdl, mle or None"
        )
    if k > min(shape):
        raise ValueError(f"n_components={k} is more than min(n_samples, n_features)={min(shape)}")
    return int(k)


def solved(model: Any, rows: Rows | CentredSample, P: np.ndarray, start: np.ndarray | None) -> Found:
    """Return what the solver of the model finds in the span of P (p, k), and warn if it did not converge."""
    try:
        settings = settings_of(model)
        found = FITS[settings.solver](settings, rows, P, start)
    except InputError as error:
        raise ValueError(str(error)) from None
    if not found.converged:
        more = ", or try another a" if settings.solver in BELONGS["a"] else ""
        warnings.warn(
            f"SigmaPCA did not converge in {found.iterations} iterations: raise max_iter{more}",
            ConvergenceWarning,
            stacklevel=4,
        )
    return found


def store(model: Any, found: Found, sigma: np.ndarray, total: float, n: int) -> None:
    """Set the attributes of the fitted model: components by decreasing variance, their signs by the rule of the house.

    sigma (k,): standard deviations on all n rows; total: the variance of all features.
    """
    from sigmapca_cli.methods.solution import signed

    order = np.argsort(-sigma, kind="stable")
    W = found.W[:, order]
    describe(model, W * signed(W), sigma[order], total, n)
    model.n_iter_, model.converged_, model.a_ = found.iterations, found.converged, np.asarray(found.a)[order]
    model.tau_, model.negentropy_, model.dependent_pairs_ = found.tau, None, None
    model.ordered_ = found.ordered
    if found.negentropy is not None and found.pairs is not None:
        model.negentropy_ = found.negentropy[order]
        model.dependent_pairs_ = np.sort(np.argsort(order)[found.pairs], axis=1)
