"""Loadings: how much of each feature each component carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError

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
    """Return the loadings of a stored run. Raise InputError if the run is not finished."""
    solution = Solution.of(run)
    values = np.asarray(solution.decoder.T)
    total = run.evaluation.get("total_variance")
    names = solution.names or [str(i) for i in range(len(values))]
    share = None if not total else (values**2).sum(axis=0) / float(total)
    return Loadings(list(names), values, (values**2).sum(axis=1), share)


def rotated(found: Loadings, method: str) -> Loadings:
    """Return the loadings of rotated factors, by decreasing share: the same space, with axes that are simple to read.

    `method`: one of ROTATIONS, by factor_analyzer (Kaiser's normalisation). The data do not choose these axes.
    Raise InputError where it is not installed, and for a single component.
    """
    try:
        from factor_analyzer.rotator import Rotator
    except ImportError:
        raise InputError(f"--rotate {method}: needs a package: pip install factor_analyzer") from None
    if found.values.shape[1] < 2:
        raise InputError(f"--rotate {method}: a single component has no rotation")
    rotator = Rotator(method=method)
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
