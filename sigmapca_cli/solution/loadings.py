"""Loadings: how much of each feature each component carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.solution.solution import Solution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loadings:
    """x ≈ mean + Σ_i y_i l_i, where y_i has variance 1: the loadings l_i = σ_i w_i of orthogonal filters.

    values (p, k): in the units that training took (standardised features where data.standardise=feature: correlations).
    communality (p,): Σ_i l_ji², the variance of feature j that the components explain together, in these units squared.
    share (k,): Σ_j l_ji² over the total variance; None where the run did not store it.
    """

    names: list[str]
    values: Array
    communality: Array
    share: Array | None


def loadings_of(run: Any) -> Loadings:
    """Return the loadings of a stored run. Raise InputError if the run is not finished."""
    solution = Solution.of(run)
    values = np.asarray(solution.decoder.T)
    total = run.evaluation.get("total_variance")
    names = solution.names or [str(i) for i in range(len(values))]
    share = None if not total else (values**2).sum(axis=0) / float(total)
    return Loadings(list(names), values, (values**2).sum(axis=1), share)
