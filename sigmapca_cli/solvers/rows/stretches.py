"""Sums over stretches of neighbouring rows: their spread gives errors that hold for rows that depend on neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = np.ndarray

GROUPS = 64
"""Number of stretches to begin with: a standard error is uncertain by 9 %."""
FEWEST = 12
"""Least number of stretches: fewer have no spread to speak of."""
GROWS = 1.08
"""Stretches are joined in pairs while their mean spread grows by more than this factor."""


def widened(
    sums: tuple[Array, ...], watched: Callable[[tuple[Array, ...]], tuple[Array, ...]]
) -> tuple[Array, ...]:
    """Return sums over stretches, each (m, …), joined in pairs until the spread of what is watched grows no more.

    watched: from the sums to statistics (m, …) that add over stretches.
    """
    while len(sums[0]) >= 2 * FEWEST:
        joined = tuple(joined_in_pairs(part) for part in sums)
        now, then = (np.concatenate([variance(v).ravel() for v in watched(x)]) for x in (sums, joined))
        if np.mean(then[now > 0] / now[now > 0]) < GROWS:
            break
        sums = joined
    return sums


def widened_means(means: dict[str, Array], weight: Array, watched: tuple[str, ...]) -> dict[str, Any]:
    """Return means (m, …) over stretches that are joined as `widened` says, and their `weight` (m,), by name.

    weight: share of the rows of each stretch; watched: names of the means whose spread decides.
    """
    names = list(means)

    def influences(sums: tuple[Array, ...]) -> tuple[Array, ...]:
        parts = dict(zip(names, sums[1:], strict=True))
        return tuple(parts[n] - np.multiply.outer(sums[0], parts[n].sum(0)) for n in watched)

    weight, *wide = widened((weight, *(weighted(weight, v) for v in means.values())), influences)
    return {"weight": weight, **{n: weighted(1 / weight, v) for n, v in zip(names, wide, strict=True)}}


def error_of(weight: Array, influence: Array) -> Array:
    """Return the standard error of a statistic from the influence (m, …) of each stretch; weight (m,)."""
    count = len(weight)
    return np.asarray(np.sqrt(np.tensordot(weight**2, influence**2, axes=1) * count / (count - 1)))


def fitted_threshold(probability: float, freedom: int) -> float:
    """Return the score that the curvature of a pair of fitted axes exceeds by chance with this probability.

    It is the larger of two Rayleigh variables, one for each leading harmonic, over an independent estimate of their
    scale with `freedom` degrees of freedom.
    """
    return float(np.sqrt(freedom * ((probability / 2) ** (-2 / freedom) - 1)))


def weighted(weight: Array, parts: Array) -> Array:
    """Return each of the parts (m, …) times its weight (m,)."""
    return np.asarray(np.einsum("g,g...->g...", weight, parts))


def joined_in_pairs(sums: Array) -> Array:
    """Return sums (m, …) over stretches twice as wide; a last one alone joins the stretch before it."""
    even = len(sums) // 2 * 2
    out = sums[:even].reshape(even // 2, 2, *sums.shape[1:]).sum(1)
    if even < len(sums):
        out[-1] += sums[-1]
    return np.asarray(out)


def variance(sums: Array) -> Array:
    """Return the variance of the total of independent sums (m, …)."""
    return np.asarray(np.square(sums - sums.mean(0)).sum(0) * len(sums) / max(len(sums) - 1, 1))


UNSURE = 0.5
"""Standard error of the angle of an axis, in radians, above which rows do not fix it, whatever tells it apart."""


def unsure(told: NDArray[np.bool_], angle: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the pairs (k, k) without which no axis has a standard error above UNSURE.

    told (k, k): pairs that are told apart by their variances or shapes; angle (k, k): their errors in radians. Two slow
    trends have spectra that differ beyond chance, and an angle that two turns of each cannot fix. Of an axis whose
    pairs together have a larger error than UNSURE, those of the largest errors are returned.
    """
    counted = told & ~np.eye(len(told), dtype=bool)
    square = np.where(counted, np.square(angle), 0.0)
    order = np.argsort(square, axis=1)
    beyond = np.cumsum(np.take_along_axis(square, order, axis=1), axis=1) > UNSURE**2
    found = np.zeros(square.shape, bool)
    np.put_along_axis(found, order, beyond, axis=1)
    return np.asarray((found | found.T) & counted)
