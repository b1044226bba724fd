"""Pairs of components that are stable mixtures: they depend on each other, and are further from Gaussian if rotated.

A positive curvature means that a pair is stable, not that it is at its sources. With a = 4, two uniform sources of
equal variance are stable half way between their axes, and so are skewed two-valued ones. At independent sources the
sum of the negentropies J of the pair is at its maximum, whatever their shapes; a mixture of them has dependent
components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.solvers.independence.contrast import K1, K2, bell
from sigmapca_cli.solvers.independence.dependence import dependence
from sigmapca_cli.solvers.independence.null import not_gaussian
from sigmapca_cli.solvers.independence.rows import Rows

ANGLES = np.linspace(0, np.pi / 2, 12, endpoint=False)
FAR = np.pi / 9
"""Smallest rotation that shows a mixture: smaller ones (below 20°) come from sampling error or another contrast."""
GROUPS = 16
"""Number of groups of rows, for standard errors."""
CLEAR = 2.5
"""Number of standard errors by which the rotated pair must be further from Gaussian, beside being dependent."""
LEAST_GAIN = 0.002
"""Least gain of J of the pair; two Laplace components have 0.05."""
MIXTURE_ROWS = 10_000
"""Largest number of rows that are rotated."""


def mixed_pairs(z: Array, near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which pairs are clearly mixtures, (k, k), symmetric, of the standardised components z (n, k).

    near (k, k): the pairs to look at, those that variances do not tell apart.
    """
    k = z.shape[1]
    found = np.zeros((k, k), bool)
    z = z[evenly_spaced(len(z), MIXTURE_ROWS)]
    varying = np.flatnonzero(z.std(0) > 0)
    if len(varying) < 2 or not np.triu(near, 1).any() or len(z) < 4 * GROUPS:
        return found
    for pair in dependence(Rows.of(z[:, varying]), np.eye(len(varying))).pairs():
        first, second = sorted(varying[list(pair)])
        if near[first, second]:
            found[first, second] = found[second, first] = is_mixture(z[:, first], z[:, second])
    return found


def gaussian_by_negentropy(Y: Array) -> NDArray[np.bool_]:
    """Return which components of Y (n, k) have a shape that J does not tell from a Gaussian one on these rows, (k,)."""
    centred = Y - Y.mean(0)
    spread = centred.std(0)
    e, _ = bell(z := centred / np.where(spread > 0, spread, 1.0))
    J = K1 * (z * e).mean(0) ** 2 + K2 * (e.mean(0) - np.sqrt(0.5)) ** 2
    return np.asarray(~not_gaussian(J, len(z)), bool)


def is_mixture(y: Array, z: Array) -> bool:
    """Return whether some far rotation of two standardised components (n,) has a clearly larger sum of J."""
    # Neighbouring rows may depend on each other, so they go into different groups.
    sums = np.stack([sums_of(y[g::GROUPS], z[g::GROUPS]) for g in range(GROUPS)])  # (groups, angles, 2, 2)
    counts = np.array([len(y[g::GROUPS]) for g in range(GROUPS)])[:, None, None, None]
    gain = gains(sums.sum(0) / counts.sum())
    without = np.stack([gains(mean) for mean in (sums.sum(0) - sums) / (counts.sum() - counts)])
    error = np.sqrt((GROUPS - 1) * without.var(0))
    far = np.minimum(ANGLES, np.pi / 2 - ANGLES) >= FAR
    return bool((far & (gain > np.maximum(CLEAR * error, LEAST_GAIN))).any())


def sums_of(y: Array, z: Array) -> Array:
    """Return Σ z e^(−z²/2) and Σ (e^(−z²/2) − √½) of both components at every angle, (angles, 2, 2)."""
    c, s = np.cos(ANGLES)[:, None], np.sin(ANGLES)[:, None]
    turned = np.stack([c * y + s * z, c * z - s * y], axis=1)
    e, _ = bell(turned)
    return np.stack([(turned * e).sum(-1), (e - np.sqrt(0.5)).sum(-1)], axis=-1)


def gains(means: Array) -> Array:
    """Return J of the pair at every angle less J of the pair as it is, (angles,), from means (angles, 2, 2)."""
    J = (K1 * means[..., 0] ** 2 + K2 * means[..., 1] ** 2).sum(-1)
    return np.asarray(J - J[0])
