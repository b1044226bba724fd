"""Methods without a training loop: eigenvectors, closed forms, and the peers' algorithms on the projected
data.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.moments.implicit import WIDE, Axes, Covariance, ImplicitCovariance
from sigmapca_cli.methods.config import refuse_unused
from sigmapca_cli.methods.solution import Array, Solution, finalise, mixing_norms, pseudoinverse, standardise
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required

if TYPE_CHECKING:
    from sigmapca_cli.data.source import Source
    from sigmapca_cli.settings.schema import Config

log = logging.getLogger("sigmapca")


@dataclass(frozen=True)
class DirectMethod:
    """A method that is fitted in one call."""

    name: str
    model: Any
    algorithm: Callable[[Any, Any], Solution]
    kind: str = "direct"

    @classmethod
    def build(cls, cfg: Config) -> DirectMethod:
        """Look the algorithm up; orderings and regularisers have no meaning here and are refused."""
        name = cfg.model.objective
        if name not in ALGORITHMS:
            raise InputError(
                f"model.objective={name}: not a direct method; choose one of: {', '.join(ALGORITHMS)}"
            )
        refuse_unused(cfg.model)
        if cfg.regularisers:
            raise InputError(f"regularisers: {cfg.model.name} has no training loop that they could act on")
        if cfg.ordering.name != "none":
            raise InputError(f"ordering={cfg.ordering.name}: {cfg.model.name} is ordered by variance already")
        if cfg.model.order != "filters" and name not in ("fastica", "picard"):
            raise InputError(f"model.order={cfg.model.order}: is for linear ICA, not for {cfg.model.name}")
        if name == "picard":
            _picard()
        return cls(cfg.model.name, cfg.model, ALGORITHMS[name])

    def fit(self, cfg: Config, source: Source) -> Solution:
        """Fit on a Source (rows standardised, blocks and covariance streamed)."""
        return self.algorithm(cfg, source)


# ---- eigenvectors ----


def leading(source: Source, k: int) -> tuple[Array, Array, Axes]:
    """Eigenvectors (p, k) and eigenvalues (k,) by decreasing variance, and all that is known of the axes."""
    if not 1 <= k <= source.p:
        raise InputError(f"k={k}: must lie between 1 and the number of features p={source.p}")
    axes = source.leading_axes(k)
    axes = replace(axes, values=np.clip(axes.values, 0, None))
    return axes.up_to(k), axes.values[:k], axes


def pca_svd(cfg: Config, source: Source) -> Solution:
    """W = k leading eigenvectors of C = E(xᵀx), σ = √eigenvalues

    (linear table, row 1). Exact, float64, streamed.
    """
    _, C = source.covariance()
    W, kept, axes = leading(source, cfg.k)
    if axes.rank < cfg.k:
        log.warning(
            "the data has numerical rank %d: components beyond it (k=%d) are arbitrary", axes.rank, cfg.k
        )
    facts: dict[str, Any] = {"eigenvalues": axes.values if axes.whole else kept, "converged": True}
    if axes.whole:
        facts["rank"] = axes.rank
    return finalise(W, C, extra=facts)


def ppca(cfg: Config, source: Source) -> Solution:
    """Maximum likelihood of x = yA + λε (paper, probabilistic PCA; Tipping and Bishop 1999), in closed form.

    λ² = mean of the discarded eigenvalues, A = (Λ − λ²I)^½ Wᵀ. The encoder is WΣ⁻¹, as the paper's table has it, or
    with model.ppca_encoder=printed the B = A⁻¹ = W(max(0, Λ − λ²I))^-½ of its text: xB has variance Λ/(Λ − λ²) then,
    more than 1. A component that is no larger than the noise becomes 0.
    """
    _, C = source.covariance()
    W, kept, axes = leading(source, cfg.k)
    left = axes.values[cfg.k :]
    noise = float(left.mean()) if left.size else 0.0
    if len(axes.values) < source.p:
        noise = max(axes.total - float(kept.sum()), 0.0) / (source.p - cfg.k)
    solution = finalise(W, C)
    loadings = np.sqrt(np.clip(kept - noise, 0, None))[:, None] * solution.W.T
    if cfg.model.ppca_encoder == "printed":
        size = np.linalg.norm(loadings, axis=1)
        solution.encoder = np.where(size > 0, solution.W / np.where(size > 0, size, 1.0), 0.0)
        solution.decoder = pseudoinverse(solution.encoder)
    solution.extra.update(noise_variance=noise, loadings=loadings, converged=True)
    if axes.whole:
        solution.extra["rank"] = axes.rank
    return solution


def factor_analysis(cfg: Config, source: Source) -> Solution:
    """scikit-learn's FactorAnalysis (paper, factor analysis): x = yA + ε, ε with its own variance in
    every feature.

    The likelihood sees the covariance only: 2p rows ±√p·C^½ have exactly it, and stand in for the data.
    The encoder is the posterior mean, x ↦ xΨ⁻¹Aᵀ(I + AΨ⁻¹Aᵀ)⁻¹, scaled to unit variance.
    """
    from sklearn.decomposition import FactorAnalysis
    from sklearn.exceptions import ConvergenceWarning

    _, C = source.covariance()
    p = C.shape[0]
    if isinstance(C, ImplicitCovariance):
        raise InputError(
            f"model=factor_analysis needs the whole covariance of the {p} features, and takes at most {WIDE}: use "
            "model=ppca, or fewer features"
        )
    if cfg.k >= p:
        raise InputError(
            f"k={cfg.k}: factor analysis needs fewer factors than the {p} features, as each has a noise of its own"
        )
    axes = leading(source, cfg.k)[2]
    values, vectors = axes.values, axes.vectors
    # scikit-learn adds an absolute 1e-12 to its variances: rows of unit mean variance make it relative.
    unit = float(np.sqrt(np.trace(C) / p))
    root = np.sqrt(p * np.clip(values, 0, None))[:, None] * vectors.T / unit
    rotation = "varimax" if cfg.model.varimax else None
    model = FactorAnalysis(
        cfg.k, tol=cfg.model.tolerance, max_iter=cfg.model.max_iter, svd_method="lapack", rotation=rotation
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(np.concatenate([root, -root]))
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    _say_if_not(converged, "factor_analysis", cfg.model.max_iter)
    A, noise = model.components_ * unit, model.noise_variance_ * unit**2
    B = (A / noise).T @ np.linalg.inv(np.eye(cfg.k) + (A / noise) @ A.T)
    extra = {"noise_variance": noise, "loadings": A, "converged": converged, "iterations": model.n_iter_}
    return finalise(_unit(B), C, extra=extra)


# ---- linear ICA on the projected, whitened data ----


def whitened(cfg: Config, source: Source) -> tuple[Array, Array, Covariance]:
    """(P (p, k), x P (n, k) of unit variance in float64, C): rows are read block by block, only (n, k)
    is held.
    """
    mean, C = source.covariance()
    W, values, axes = leading(source, cfg.k)
    if axes.rank < cfg.k:
        raise InputError(
            f"k={cfg.k}: the data has numerical rank {axes.rank}, it cannot be whitened to more components"
        )
    P = W / np.sqrt(values)
    shift = np.asarray(mean, np.float64) @ P
    return P, np.concatenate([z - shift for z in source.project(P)]), C


def fastica(cfg: Config, source: Source) -> Solution:
    """scikit-learn's FastICA after our own whitening; filters of unit norm, by the std of their
    projections.
    """
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    P, Z, C = whitened(cfg, source)
    model = FastICA(
        whiten=False,
        fun=cfg.model.fun,
        max_iter=cfg.model.max_iter,
        tol=cfg.model.tolerance,
        random_state=cfg.seed % 2**32,  # NumPy's generators take no more
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Z)
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    _say_if_not(converged, "fastica", cfg.model.max_iter)
    facts = {"converged": converged, "iterations": int(model.n_iter_)}
    return _unmixing(P @ model.components_.T, C, facts, ranking(cfg.model.order, P, Z))


def picard(cfg: Config, source: Source) -> Solution:
    """python-picard's orthogonal, extended Picard after our own whitening; the gradient norm is reported."""
    run = _picard()
    P, Z, C = whitened(cfg, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, V, Y = run(
            Z.T,
            whiten=False,
            centering=False,
            ortho=True,
            extended=True,
            max_iter=int(cfg.model.max_iter),
            tol=cfg.model.tolerance,
            random_state=cfg.seed % 2**32,  # NumPy's generators take no more
        )
    gradient = _relative_gradient(Y)
    converged = bool(gradient < 10 * cfg.model.tolerance)
    _say_if_not(converged, "picard", cfg.model.max_iter)
    facts = {"converged": converged, "gradient_norm": gradient}
    return _unmixing(P @ V.T, C, facts, ranking(cfg.model.order, P, Z))


def _relative_gradient(Y: Array) -> float:
    """max |E(tanh(y)ᵀy) − its transpose| with the sign that the extended density takes for each component."""
    psi = np.tanh(Y)
    signs = np.sign((1 - psi**2).mean(1) * (Y**2).mean(1) - (psi * Y).mean(1))
    G = signs[:, None] * (psi @ Y.T / Y.shape[1])
    return float(np.abs(G - G.T).max() / 2)


def _picard() -> Callable[..., Any]:
    return required("model=picard", "picard", package="python-picard").picard


def _unit(B: Array) -> Array:
    return B / np.linalg.norm(B, axis=0)


def _unmixing(
    B: Array, C: Covariance, extra: dict[str, Any], rank: Callable[[Array], Array] | None = None
) -> Solution:
    """Filters = columns of the unmixing matrix at unit norm, so that their std orders them (paper, ICA ordering).

    `rank` orders them by something else, see `ranking`.
    """
    return finalise(_unit(standardise(B, C)), C, extra=extra, rank=rank)


def ranking(order: str, P: Array, Z: Array) -> Callable[[Array], Array] | None:
    """What ICA's components are ordered by (paper, ICA ordering): None for the std of unit-norm filters.

    mixing: norm of the mixing columns. negentropy: (E log cosh z − E log cosh n)² of the rows Z (n, k) = xP.
    """
    if order == "filters":
        return None
    if order == "mixing":
        return mixing_norms
    return lambda encoder: negentropy(Z @ (pseudoinverse(P) @ encoder))


def negentropy(z: Array) -> Array:
    """(E log cosh z − E log cosh n)² of columns of unit variance (n, k), n standard normal; as `evaluation.metrics`."""
    size = np.abs(z)
    return np.asarray(((size + np.log1p(np.exp(-2 * size)) - np.log(2)).mean(0) - 0.37456720749143807) ** 2)


def _say_if_not(converged: bool, name: str, iterations: int) -> None:
    if not converged:
        log.warning(
            "%s has not converged in %d iterations; raise model.max_iter or model.tolerance", name, iterations
        )


ALGORITHMS: dict[str, Callable[[Any, Any], Solution]] = {
    "pca_svd": pca_svd,
    "ppca": ppca,
    "factor_analysis": factor_analysis,
    "fastica": fastica,
    "picard": picard,
}
SETTINGS = {
    "factor_analysis": ("max_iter", "tolerance", "varimax"),
    "fastica": ("fun", "max_iter", "tolerance"),
    "picard": ("max_iter", "tolerance"),
}
"""Settings of the model that an iteration reads; a closed form reads none of these."""
