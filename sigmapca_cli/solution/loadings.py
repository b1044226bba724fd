"""Loadings: how much of each feature each component carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data import build
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required

Array = NDArray[np.float64]

ORTHOGONAL = ("varimax", "quartimax", "equamax", "oblimax")
OBLIQUE = ("oblimin", "promax", "quartimin")
ROTATIONS = (*ORTHOGONAL, *OBLIQUE)


@dataclass(frozen=True)
class Loadings:
    """x ≈ mean + Σ_i y_i l_i, where y_i has variance 1: the loadings l_i = σ_i w_i of orthogonal filters.

    values (p, k): in the units that training took (standardised features where data.standardise=feature: correlations).
    communality (p,): Σ_i l_ji², the variance of feature j that the components explain together, in these units squared.
    share (k,): Σ_j l_ji² over the total variance; None where the run did not store it. correlation (k, k): of oblique
    factors; None for uncorrelated ones.
    """

    names: list[str]
    values: Array
    communality: Array
    share: Array | None
    correlation: Array | None = None


def loadings_of(run: Any) -> Loadings:
    """Return the loadings of a stored run. Raise InputError if the run is not finished.

    Those of factor analysis are of its factors, not of the components, which are posterior means of the factors.
    """
    solution = Solution.of(run)
    values = _of_factors(run.evaluation, solution.encoder)
    values = np.asarray(solution.decoder.T) if values is None else values
    total = run.evaluation.get("total_variance")
    names = solution.names or [str(i) for i in range(len(values))]
    share = None if not total else (values**2).sum(axis=0) / float(total)
    return Loadings(list(names), values, (values**2).sum(axis=1), share)


def _of_factors(evaluation: dict[str, Any], encoder: Array) -> Array | None:
    """Return the loadings A (p, k) of factor analysis in the order and sign of the encoder; None of other methods.

    The encoder is the posterior mean x ↦ xΨ⁻¹A(I + AᵀΨ⁻¹A)⁻¹, each column scaled.
    """
    if "loadings" not in evaluation or "noise_variance" not in evaluation:
        return None
    A = np.asarray(evaluation["loadings"], dtype=np.float64).T
    weighted = A / np.asarray(evaluation["noise_variance"], dtype=np.float64)[:, None]
    posterior = weighted @ np.linalg.inv(np.eye(A.shape[1]) + A.T @ weighted)
    same = (posterior / np.linalg.norm(posterior, axis=0)).T @ (encoder / np.linalg.norm(encoder, axis=0))
    factor = np.abs(same).argmax(axis=0)
    return np.asarray(A[:, factor] * np.sign(same[factor, np.arange(len(factor))]))


def rotated(found: Loadings, method: str) -> Loadings:
    """Return the loadings of rotated factors, by decreasing share: the same space, with axes that are simple to read.

    `method`: one of ROTATIONS, by factor_analyzer (Kaiser's normalisation). The data do not choose these axes.
    Raise InputError where it is not installed, and for a single component.
    """
    rotators = required(f"--rotate {method}", "factor_analyzer.rotator", package="factor_analyzer")
    if found.values.shape[1] < 2:
        raise InputError(f"--rotate {method}: a single component has no rotation")
    rotator = rotators.Rotator(method=method)
    values = np.asarray(rotator.fit_transform(found.values))
    phi = None if method in ORTHOGONAL or rotator.phi_ is None else np.asarray(rotator.phi_)
    order = np.argsort(-(values**2).sum(axis=0), kind="stable")
    signs = np.where(values[:, order].sum(axis=0) < 0, -1.0, 1.0)
    values = values[:, order] * signs
    if phi is None:
        total = None if found.share is None else (found.values**2).sum() / found.share.sum()
        share = None if total is None else (values**2).sum(axis=0) / total
        return replace(found, values=values, share=share)
    correlation = phi[np.ix_(order, order)] * np.outer(signs, signs)
    return replace(found, values=values, share=None, correlation=correlation)


def contributions(found: Loadings) -> Array:
    """Return l_ji² / Σ_j l_ji² (p, k): the share that each feature has in a component.

    Raise InputError for oblique factors, whose squares are no shares.
    """
    if found.correlation is not None:
        raise InputError("--contributions: squares of loadings are shares of uncorrelated factors only")
    squares = found.values**2
    total = squares.sum(axis=0)
    return np.asarray(squares / np.where(total > 0, total, 1.0))


def cos_squares(found: Loadings, variance: Array) -> Array:
    """Return l_ji² / var x_j (p, k): the share of each feature's variance (p,) that a component explains.

    It is the squared cosine of the angle between feature and component; 0 for a feature without variance.
    """
    return np.asarray(found.values**2 / np.where(variance > 0, variance, np.inf)[:, None])


def variances(run: Any) -> Array:
    """Return the variances (p,) of the features in the units that training took, from the data of the run."""
    covariance = build(data_of(run)).covariance()[1]
    return np.asarray(covariance.diagonal(), dtype=np.float64)
