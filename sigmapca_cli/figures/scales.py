"""An axis for numbers that approach 1, such as MCC: 0.9, 0.99 and 0.999 have the same distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

TICKS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
CLOSEST = 1e-5
"""A number nearer to 1 than this is drawn at this distance."""
HIGH = 0.9
"""Numbers of which none is above this have an ordinary axis from 0 to 1."""


def nines(value: ArrayLike) -> NDArray[np.float64]:
    """Return −log₁₀(1 − v): 0 for 0, 1 for 0.9, 2 for 0.99, 3 for 0.999."""
    return np.asarray(-np.log10(np.maximum(1 - np.asarray(value, dtype=np.float64), CLOSEST)))


def from_nines(height: ArrayLike) -> NDArray[np.float64]:
    """Return the number v of −log₁₀(1 − v)."""
    return np.asarray(1 - 10.0 ** -np.asarray(height, dtype=np.float64))


def apply_nines(axes: Any, values: ArrayLike) -> None:
    """Give an axes of matplotlib the vertical axis that suits numbers up to 1: `nines` if one is above HIGH."""
    values = np.asarray(values, dtype=np.float64)
    if values.max() <= HIGH:
        axes.set_ylim(min(0.0, values.min()), 1.02)
        return
    axes.set_yscale("function", functions=(nines, from_nines))
    low = min(0.0, float(values.min()))
    top = next((tick for tick in TICKS if tick >= values.max()), 1 - CLOSEST)
    axes.set_ylim(low, top + 0.3 * (1 - top))
    axes.set_yticks([t for t in TICKS if t <= top], [f"{t:g}" for t in TICKS if t <= top])
    axes.minorticks_off()
