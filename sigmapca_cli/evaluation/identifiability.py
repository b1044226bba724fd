"""Which components to trust: the curvature of every pair with its standard error, and the angles that follow.

The curvature H_ij (`pairs`) of the main loss is positive where a pair is identified, by different variances
or by its shape; zero for a Gaussian pair of equal variance (Stein's lemma), whose axes are arbitrary;
negative where this nonlinearity turns the pair away from its axes. All of it is local: it says how well the
axes that were found are held, not that no other stationary point exists (compare seeds for that:
`stability`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.evaluation.certificate import (
    CERTIFICATE_LEVEL,
    REPELLED,
    Certificate,
    verdict_of,
)
from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.evaluation.mixtures import gaussian_by_negentropy, mixed_pairs
from sigmapca_cli.evaluation.pairs import Blocks, PairMoments, PairStatistics, accumulate, statistics
from sigmapca_cli.solvers.rows.stretches import fitted_threshold

MOST_COUPLED = 64
"""Largest k for which the angles take the coupling of pairs into account (a k²/2 × k²/2 system)."""


def certify(
    Y: ArrayLike | Iterable[ArrayLike],
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    a: float | ArrayLike = 4.0,
    level: float = CERTIFICATE_LEVEL,
    fitted: bool = True,
    block: int = 8192,
    c: float | None = None,
    weights: Array | None = None,
    ordered: bool = False,
) -> Certificate:
    """Return the certificate of components: which pairs the data identify, and how well.

    Parameters
    ----------
    Y : array-like of shape (n, k), or re-iterable of array-like of shape (m, k)
        Components; blocks are read twice. Rows should come in their natural order, so that those which depend on each
        other are neighbours.
    nonlinearity : str
        Name of h, which has a score φ (`solvers.newton.scores`).
    derivative : {"true", "one"}
        Whether h′ is itself or 1.
    a : float or array-like of shape (k,)
        Scale of h, in units of the standard deviation of each component.
    level : float
        Error rate at which an arbitrary pair may be called identified.
    fitted : bool
        Whether the axes were fitted by nonlinear PCA on these rows. False: the rows
        were held out, or the axes are those of linear PCA.
    block : int
        Rows at a time.
    c : float, optional
        Scale of an asymmetric tanh.
    weights : ndarray of shape (n,), optional
        Of the rows of an array, ≥ 0 with mean 1.
    ordered : bool
        Whether rows depend on their neighbours over long stretches, as in time: then groups of rows are as wide as the
        spread of the moments asks for.

    Returns
    -------
    Certificate
        Curvatures, their errors, verdicts and angles.

    Raises
    ------
    InputError
        If the nonlinearity has no score φ.

    Notes
    -----
    With fitted=False, no Gaussian pair of equal variance is called identified with probability 1 − level or more.
    Fitted axes sit where chance made H large: two leading harmonics of a noise, each of Rayleigh distributed height, so
    the threshold is higher (2.8 for one pair at 0.05, where a t distributed score has 1.7). All pairs are fitted
    together, so the level then holds for each pair only. The equation of H is in docs/evaluation.md.
    """
    from sigmapca_cli.solvers.newton.scores import lookup

    score = lookup(nonlinearity, derivative, c)
    blocks = Blocks(Y, block, None if weights is None else weights[:, None])
    n, mean, sigma = blocks.location()
    a = np.array(np.broadcast_to(np.asarray(a, dtype=np.float64), sigma.shape))
    moments = accumulate(blocks, n, mean, sigma, score, a)
    moments = moments.in_time() if ordered else moments
    pairs = statistics(moments, sigma)
    threshold = threshold_of(level, len(sigma), len(pairs.weight) - 1, fitted)
    return _certificate(moments, pairs, sigma, score, a, threshold, level)


def threshold_of(level: float, k: int, freedom: int, fitted: bool) -> float:
    """Return the score that a Gaussian pair exceeds with probability level / (number of pairs).

    `freedom`: degrees of freedom of the standard errors; fitted: whether the axes were fitted on the same rows.
    """
    from scipy.special import stdtrit

    each = level / max(k * (k - 1) // 2, 1)
    if not fitted:
        return -float(stdtrit(freedom, each))
    return fitted_threshold(each, freedom)


def _certificate(
    moments: PairMoments,
    pairs: PairStatistics,
    sigma: Array,
    score: Any,
    a: Array,
    threshold: float,
    level: float,
) -> Certificate:
    s = pairs.log_sigma_influence
    log_sigma = np.log(np.where(sigma > 0, sigma, 1.0))
    variance_error = pairs.error(s[:, :, None] - s[:, None, :])
    # Ratios of sample variances are biased upwards: without this term equal variances would look unequal.
    m, t2 = np.diag(moments.over_all(moments.A)), pairs.ratio
    bias = 2 * variance_error**2 * (m * t2 + m[:, None] / t2)
    error = pairs.error(pairs.H_influence)
    value = _ratio(pairs.H - bias, error)
    verdict = verdict_of(value, threshold)
    variance_score = _ratio(np.abs(log_sigma[:, None] - log_sigma), variance_error)
    # Axes identified by different variances are correct; axes identified by shape alone may be a mixture.
    mixed = mixed_pairs(moments.rows, variance_score <= threshold)
    verdict[mixed] = REPELLED
    return Certificate(
        curvature=pairs.H,
        error=error,
        score=value,
        shape=pairs.shape,
        shape_error=pairs.error(pairs.shape_influence),
        variance_score=variance_score,
        a=a,
        gaussian=gaussian_by_negentropy(moments.rows),
        mixed=mixed,
        angle=_angles(moments, pairs, sigma, score, a),
        verdict=verdict,
        kurtosis=np.where(sigma > 0, moments.fourth - 3, 0.0),
        sigma=sigma,
        n=moments.n,
        threshold=threshold,
        level=level,
    )


def _angles(moments: PairMoments, pairs: PairStatistics, sigma: Array, score: Any, a: Array) -> Array:
    """Return the standard error of the angle of each pair, (k, k): of J⁻¹S, J = dS/dθ, or of S/H for large k."""
    k = len(sigma)
    if not 2 < k <= MOST_COUPLED:
        return _ratio(pairs.error(pairs.S_influence), np.abs(pairs.H), at_zero=np.inf)
    J = _jacobian(moments, sigma, score, a)
    upper = np.triu_indices(k, 1)
    influence = np.linalg.lstsq(J, pairs.S_influence[:, upper[0], upper[1]].T, rcond=1e-9)[0].T
    angle = np.zeros((k, k))
    angle[upper] = pairs.error(influence)
    return angle + angle.T


def _jacobian(moments: PairMoments, sigma: Array, score: Any, a: Array) -> Array:
    from sigmapca_cli.solvers.newton import jacobian
    from sigmapca_cli.solvers.newton.jacobian import measure

    safe = np.where(sigma > 0, sigma, 1.0)
    measured = measure(moments.rows, np.eye(len(sigma)), score, a, third=True)
    C = (moments.rows.T @ moments.rows) / len(moments.rows) * np.outer(safe, safe)
    return jacobian.jacobian(measured, safe, C)


def _ratio(top: Array, bottom: Array, at_zero: float = 0.0) -> Array:
    return np.divide(top, bottom, out=np.full_like(top, at_zero), where=bottom > 0)
