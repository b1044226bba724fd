"""The certificate of an answer of solver=independence: from the errors of C_τ instead of the curvature of the main
loss, with a test of whether the components are independent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.data.row_order import order_of
from sigmapca_cli.evaluation.certificate import ARBITRARY, CERTIFICATE_LEVEL, IDENTIFIED, Certificate
from sigmapca_cli.solvers.independence.contrast import Contrast
from sigmapca_cli.solvers.independence.curvature import Curvature
from sigmapca_cli.solvers.independence.dependence import dependence
from sigmapca_cli.solvers.independence.errors import ERROR_ROWS, bounds_of, errors
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.stretches import apart_bound
from sigmapca_cli.solvers.newton.jacobian import unpack
from sigmapca_cli.solvers.rows.parallel import threads

Array = NDArray[np.float64]


def certify_independence(
    Y: ArrayLike,
    tau: float,
    level: float = CERTIFICATE_LEVEL,
    *,
    ordered: bool | None = None,
    spectra: Array | None = None,
    pieces: Sequence[int] = (),
    weights: Array | None = None,
) -> Certificate:
    """Return the certificate of the components Y (n, k) under C_τ = Σ log σ − τΣJ(z).

    A pair is identified if its variances differ, or if one of the two shapes is not Gaussian, beyond what the best
    rotation of k Gaussian components of equal variance shows. score: the larger of the two statistics over its bound,
    so that the threshold is 1. curvature: ∂²C/∂θ_ij² of the sample. ordered: whether neighbours depend on each other,
    found unless given; errors come from stretches of rows then. spectra (bands, k, k): of the components of rows in
    time; they tell a pair apart as shapes do. pieces: first rows of the stretches that spectra come from.
    weights (n,): of the rows, which have no order then. Components must have variance.
    """
    values = np.asarray(Y, dtype=np.float64)
    k = values.shape[1]
    with threads(None):
        ordered = weights is None and (order_of(values).ordered if ordered is None else ordered)
        rows, axes = Rows.of(values, weights), np.eye(k)
        found = errors(rows, axes, tau, ordered=ordered, spectra=spectra, pieces=pieces)
        spread_bound, shape_bound = bounds_of(k, found.groups, rows.effective)
        above = np.triu(
            unpack(Curvature(Contrast(rows, tau, spectra).at(axes), rows.subset(ERROR_ROWS)).diagonal, k)
        )
        test = dependence(rows, axes, ordered=ordered) if k > 1 else None
    dependent = [] if test is None else test.pairs()
    by_variance = found.spread / spread_bound
    shape = (
        np.sqrt(np.maximum(found.shape[:, None], found.shape) / shape_bound) if tau > 0 else np.zeros((k, k))
    )
    if spectra is not None:
        shape = np.maximum(shape, np.sqrt(found.apart / apart_bound(k, len(spectra))))
    score = np.maximum(by_variance, shape)
    square = np.square(values - np.average(values, axis=0, weights=weights))
    second, fourth = (np.average(power, axis=0, weights=weights) for power in (square, np.square(square)))
    return Certificate(
        curvature=above + above.T,
        error=np.full((k, k), np.nan),
        score=score,
        shape=shape,
        shape_error=np.ones((k, k)),
        variance_score=found.spread,
        angle=found.angle,
        verdict=np.where(found.identified, IDENTIFIED, ARBITRARY),
        kurtosis=fourth / np.square(second) - 3,
        sigma=np.sqrt(second),
        n=rows.n,
        threshold=1.0,
        level=level,
        tau=tau,
        dependent=tuple(dependent),
        spectra=spectra is not None,
        together=test is not None and not dependent and test.is_spread,
    )
