"""The certificate of an answer of solver=moments: from the exact curvature of F instead of that of the main loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.data.subsample import by_weight
from sigmapca_cli.evaluation.certificate import (
    CERTIFICATE_LEVEL,
    Certificate,
    verdict_of,
)
from sigmapca_cli.evaluation.mixtures import gaussian_by_negentropy
from sigmapca_cli.solvers.fourth_moments import ascent, influence
from sigmapca_cli.solvers.fourth_moments.maximum import COUPLED, views
from sigmapca_cli.solvers.rows.inputs import held, times
from sigmapca_cli.solvers.rows.parallel import threads

Array = np.ndarray


def certify_fourth(
    Y: ArrayLike,
    lam: float,
    level: float = CERTIFICATE_LEVEL,
    weights: Array | None = None,
    ordered: bool = False,
) -> Certificate:
    """Return the certificate of the components Y (n, k) under F = Σσ⁴ + λΣ|cum₄|.

    curvature: −∂²F/∂θ_ij² divided by 4σ_i²σ_j², less its sampling bias; angle: from the whole Hessian up to k = 64.
    The other fields are as in `identifiability.certify` for axes fitted on these rows. Rows should be in their natural
    order. Components must have variance. weights (n,): of the rows, of mean 1. ordered: whether rows depend on their
    neighbours over long stretches.
    """
    rows = np.asarray(Y, dtype=np.float64)
    rows = rows - np.average(rows, axis=0, weights=weights)
    k = rows.shape[1]
    size = np.sqrt(np.mean(times(rows**2, None if weights is None else weights[:, None])))
    weighted = held(rows / size, weights)
    with threads(None):
        view = views(weighted, COUPLED, k)[-1]
        point = view.at(np.eye(k))
        equations = ascent.system(view, point, lam)
    groups = influence.group_moments(weighted, point)
    groups = groups.in_time() if ordered else groups
    curvature, error = influence.pair_curvature(groups, point, lam)
    shape, shape_error = influence.pair_curvature(groups, point, lam, variances=False)
    threshold = influence.threshold(k, len(groups.weight), level)
    score = np.divide(curvature, error, out=np.zeros((k, k)), where=error > 0)
    angle = influence.angle_errors(groups, point, lam, equations.J, equations.D)
    variance = np.diag(point.C)
    unit = 4 * np.outer(variance, variance)
    log_sigma = np.log(variance) / 2
    moved = np.einsum("gjj->gj", groups.C) / variance / 2
    moved -= groups.weight @ moved
    its_error = groups.error(moved[:, :, None] - moved[:, None, :])
    apart = np.abs(log_sigma[:, None] - log_sigma)
    return Certificate(
        curvature=curvature / unit,
        error=error / unit,
        score=score,
        shape=shape / unit,
        shape_error=shape_error / unit,
        variance_score=np.divide(apart, its_error, out=np.zeros((k, k)), where=its_error > 0),
        angle=angle,
        verdict=verdict_of(score, threshold),
        kurtosis=point.kappa / variance**2,
        sigma=np.sqrt(variance) * size,
        n=len(rows),
        threshold=threshold,
        level=level,
        lam=lam,
        gaussian=gaussian_by_negentropy(rows if weights is None else rows[by_weight(weights, len(rows))]),
    )
