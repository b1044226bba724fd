"""What Gaussian components of equal variance show by chance: bounds of shapes and of differences of variances."""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.independence.contrast import Point

Array = np.ndarray

NULL_K = (2, 3, 4, 6, 8, 12, 16, 32, 64)
NULL_SHAPE = (11.1, 16.1, 19.8, 28.0, 34.5, 47.0, 63.6, 115.0, 208.0)
"""Largest `shape` of k Gaussian components of equal variance at the minimum of C₁: quantile .975. By simulation up to
k = 16, then in proportion to k^.86, as from 2 to 16."""
NULL_SPREAD = (2.72, 3.46, 4.10, 5.08, 5.84, 7.16, 8.22, 11.60, 16.26)
"""Largest `spread` of two of k such components at their principal axes: quantile .975, by simulation."""


def told_apart(point: Point, n: float) -> Array:
    """Return which pairs of components variances or shapes tell apart, (k, k) bool, from means over n rows.

    The errors are those of Gaussian components: ln(σ_i²/σ_j²) has the variance 4/n, and 2nJ is χ² of 2 degrees.
    """
    k = len(point.R)
    loud = not_gaussian(point.negentropy, n)
    logs = np.log(point.sigma)
    apart = np.abs(logs[:, None] - logs) * np.sqrt(n) > null(k, NULL_SPREAD)
    return np.asarray(apart | loud[:, None] | loud)


def not_gaussian(negentropy: Array, n: float) -> Array:
    """Return which components have a J (k,) beyond what the best rotation of k Gaussian ones shows on n rows."""
    return np.asarray(2 * n * negentropy > null(len(negentropy), NULL_SHAPE))


def null(k: int, quantiles: tuple[float, ...]) -> float:
    """Return a quantile of k Gaussian components, between the rows of the table or beyond the last as its last rise."""
    logs = np.log(NULL_K)
    if k <= NULL_K[-1]:
        return float(np.exp(np.interp(np.log(k), logs, np.log(quantiles))))
    power = np.log(quantiles[-1] / quantiles[-2]) / (logs[-1] - logs[-2])
    return float(quantiles[-1] * (k / NULL_K[-1]) ** power)


def in_groups(square: float, count: int | None) -> float:
    """Return the bound of a squared statistic with the error of `count` groups: the same tail, of Hotelling's T²."""
    if count is None:
        return square
    return float((count - 1) * np.expm1(square / (count - 1)))


def of_few_rows(ratio: float) -> float:
    """Return by how much wider log variances of white noise spread where components are this share of the rows.

    Sample variances of k directions of n rows lie from (1 − √(k/n))² to (1 + √(k/n))². Source: Marchenko and Pastur
    (1967). The tables above are for few components of many rows.
    """
    root = float(np.sqrt(ratio))
    return float(np.arctanh(root) / root) if root < 1 else np.inf
