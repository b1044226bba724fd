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
