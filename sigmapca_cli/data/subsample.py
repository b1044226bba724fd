"""Choice of rows of large data if part of them is enough: evenly spaced, or one from each stretch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def evenly_spaced(n: int, most: int) -> Index:
    """Return at most `most` of the numbers 0 to n − 1, evenly spaced, in order, with the first and the last.

    The stride is nearly constant. It is for pictures, previews and checks; for sums over rows take
    `one_per_stretch`, because a constant stride can match the period of the rows of an image.
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def one_per_stretch(n: int, count: int, seed: int = 0) -> Index:
    """Return `count` of the numbers 0 to n − 1, one at random from each of `count` equal stretches, in order.

    The same numbers on every call. A constant stride can match the period of the rows of an image: the residual of
    the Newton solver was 0.1 on all rows then, instead of 0.003.
    """
    jitter = np.random.default_rng(seed).random(count)
    return ((np.arange(count) + jitter) * (n / count)).astype(np.int64)


def by_weight(weights: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return sorted rows in proportion to their weights (n,), of mean 1: as many as are worth (Σw)²/Σw², or `most`.

    They are drawn at equal steps of the sum of the weights. Of equal weights each row is taken once.
    """
    w = np.ravel(weights)
    count = max(1, min(most, int(w.sum() ** 2 / np.square(w).sum() + 1e-6)))
    steps = (np.arange(count) + 0.5) * (w.sum() / count)
    return np.minimum(np.searchsorted(np.cumsum(w), steps), len(w) - 1)
