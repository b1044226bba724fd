"""Pairs of components that are stable mixtures: rotated in their plane, they are further from Gaussian.

A positive curvature means that a pair is stable, not that it is at its sources. With a = 4, two uniform sources of
equal variance are stable half way between their axes. Fourth cumulants detect this: at independent sources Σ|cum₄| of
the pair is at its maximum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation.metrics import Array

ANGLES = np.linspace(0, np.pi / 2, 12, endpoint=False)
FAR = np.pi / 9
"""Smallest rotation that shows a mixture: smaller ones (below 20°) come from sampling error or another contrast."""
GROUPS = 16
"""Number of groups of rows, for standard errors."""
CLEAR = 5.0
"""Number of standard errors by which the rotated pair must be further from Gaussian."""


def mixed_pairs(z: Array) -> NDArray[np.bool_]:
    """Return which pairs of the standardised components z (n, k) are clearly mixtures, (k, k), symmetric."""
    n, k = z.shape
    if k < 2 or n < 4 * GROUPS:
        return np.zeros((k, k), bool)
    # Neighbouring rows may depend on each other, so they go into different groups.
    parts = [gains(z[first::GROUPS]) for first in range(GROUPS)]
    each = np.stack(parts)  # (groups, angles, k, k)
    mean, error = each.mean(0), each.std(0, ddof=1) / np.sqrt(GROUPS)
    clear = (mean > CLEAR * np.maximum(error, np.finfo(float).tiny)) & (mean > 0.1)
    far = (np.minimum(ANGLES, np.pi / 2 - ANGLES) >= FAR)[:, None, None]
    return np.asarray((clear & far).any(0) & ~np.eye(k, dtype=bool), bool)


def gains(z: Array) -> Array:
    """Return Σ|cum₄| of each pair rotated by each angle, less Σ|cum₄| of the unrotated pair, (angles, k, k)."""
    n = len(z)
    square = z * z
    m31, m22 = (square * z).T @ z / n, square.T @ square / n
    m11 = z.T @ z / n
    four = np.diag(m22)
    c, s = np.cos(ANGLES)[:, None, None], np.sin(ANGLES)[:, None, None]

    def cumulant(c: Array, s: Array) -> Array:
        fourth = (
            c**4 * four[:, None]
            + 4 * c**3 * s * m31
            + 6 * c**2 * s**2 * m22
            + 4 * c * s**3 * m31.T
            + s**4 * four
        )
        second = c**2 * np.diag(m11)[:, None] + 2 * c * s * m11 + s**2 * np.diag(m11)
        return np.abs(fourth - 3 * second**2)

    turned = cumulant(c, s) + cumulant(-s, c)
    return np.asarray(turned - turned[0])
