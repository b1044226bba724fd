"""Which pairs of components differ in variance or shape, and yet have no axes that the rows fix."""

import numpy as np
from numpy.typing import NDArray

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
