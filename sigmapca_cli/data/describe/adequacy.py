"""Whether items have common factors: the measure of Kaiser, Meyer and Olkin, and Bartlett's test of sphericity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KMO_WORDS = (
    (0.9, "marvellous"),
    (0.8, "meritorious"),
    (0.7, "middling"),
    (0.6, "mediocre"),
    (0.5, "miserable"),
)
"""Kaiser's words (1974) for values from each number on; below all: unacceptable."""


def kmo(R: Array) -> float:
    """Return Σ r_ij² / (Σ r_ij² + Σ q_ij²) over i ≠ j, of correlations R (p, p) and partial correlations q.

    Near 1 the items have common factors, below 0.5 they have not. Source: Kaiser (1974).
    """
    inverse = np.linalg.pinv(R)
    spread = np.sqrt(np.maximum(inverse.diagonal(), np.finfo(float).tiny))
    other = ~np.eye(len(R), dtype=bool)
    direct, partial = np.square(R[other]).sum(), np.square((inverse / np.outer(spread, spread))[other]).sum()
    return float(direct / max(direct + partial, np.finfo(float).tiny))


def bartlett(R: Array, n: int) -> tuple[float, int, float]:
    """Return χ², its degrees of freedom and p, for the hypothesis that the items of n rows do not correlate.

    χ² = −(n − 1 − (2p + 5)/6) log det R, with p(p − 1)/2 degrees. Source: Bartlett (1951).
    """
    from scipy.special import chdtrc

    p = len(R)
    statistic = -(n - 1 - (2 * p + 5) / 6) * float(np.linalg.slogdet(R)[1])
    degrees = p * (p - 1) // 2
    return statistic, degrees, float(chdtrc(degrees, statistic))


def adequacy(x: Array) -> dict[str, str]:
    """Return both of items x (n, p), as lines of the page; none where an item does not vary."""
    if len(x) < 3 or not (x.std(axis=0) > 0).all():
        return {}
    R = np.asarray(np.corrcoef(x.T), dtype=np.float64)
    measure, (statistic, degrees, p) = kmo(R), bartlett(R, len(x))
    word = next((word for least, word in KMO_WORDS if measure >= least), "unacceptable")
    small = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return {
        "KMO": f"{measure:.3f}, {word}: the items {'have' if measure >= 0.5 else 'hardly have'} common factors",
        "Bartlett": f"χ² {statistic:.0f} on {degrees} degrees of freedom, {small}: the items "
        + ("correlate" if p < 0.05 else "need not correlate"),
    }
