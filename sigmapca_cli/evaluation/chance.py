"""Chance levels: the matched |cos| or |corr| of random directions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sigmapca_cli.evaluation.matching import cosines, match


@lru_cache(maxsize=64)
def matched_cosine(p: int, k: int, other: int | None = None, repeats: int | None = None) -> float:
    """Return the mean matched |cos| of two random sets of k (and `other`) directions in p dimensions.

    The directions of a set are orthonormal up to k = p. The mean is estimated from `repeats` draws with a fixed seed,
    by default more draws for fewer pairs: 0.406 for p = k = 32, 0.115 for p = 363, k = 32, 0.83 for p = k = 3. For
    |corr| with sources that were mixed into p features, p is the same number.
    """
    generator = np.random.default_rng(0)
    values = []
    for _ in range(repeats or max(5, 400 // k)):
        similarity = cosines(_directions(p, k, generator), _directions(p, other or k, generator))
        values.append(similarity[match(similarity)].mean())
    return float(np.mean(values))


def _directions(p: int, k: int, generator: np.random.Generator) -> np.ndarray:
    W = generator.standard_normal((p, k))
    return np.linalg.qr(W)[0] if k <= p else W
