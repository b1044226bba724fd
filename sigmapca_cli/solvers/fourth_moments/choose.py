"""The λ of solver.lam=auto: at which two halves of the rows agree best, as λ is followed from linear PCA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sigmapca_cli.data.standardisation import GAP
from sigmapca_cli.solvers.fourth_moments import ascent
from sigmapca_cli.solvers.fourth_moments.maximum import LAMBDA, LARGEST_TENSOR, centred_and_scaled, views
from sigmapca_cli.solvers.knots import CLOSE, Half, Knot, best, followed
from sigmapca_cli.solvers.rows.parallel import threads
from sigmapca_cli.system.row_shards import place

Array = np.ndarray

LAMS = (0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.33, 0.5, 1.0, 2.0, 3.0)
STRETCHES = 64
"""Number of stretches of rows, which form the two halves alternately."""


def chosen_lam(Y: Array, *, in_time: bool = False) -> tuple[float, float]:
    """Return λ and the agreement of the halves at it: of all λ within CLOSE of the best agreement, the nearest to 0.1.

    The halves consist of alternate stretches of the rows (STRETCHES in all), because neighbouring rows may be nearly
    equal; of rows in time, of two stretches with a gap between them.
    """
    before, n = place(Y)
    rows, P = np.arange(before, before + len(Y)), np.eye(Y.shape[1])
    part = rows * STRETCHES // n % 2
    if in_time:
        part = np.where(np.abs(2 * rows - n) < 2 * n // GAP, -1, 2 * rows // n)
    knots = list(over_lam([(P, Y[part == 0]), (P, Y[part == 1])]))
    top = best(knots)
    near = [knot for knot in knots if knot.agreement >= top.agreement - CLOSE]
    chosen = min(near, key=lambda knot: abs(np.log(knot.at / LAMBDA)))
    return chosen.at, chosen.agreement


def over_lam(halves: Sequence[Half], lams: Sequence[float] = LAMS) -> Iterator[Knot]:
    """Yield the knots of a path over increasing λ that starts at the principal axes."""
    with threads(None):
        looks = [views(centred_and_scaled(Y)[0], LARGEST_TENSOR)[-1] for _, Y in halves]

        def solved(lam: float, half: int, start: Array) -> tuple[Array, bool]:
            R, end = ascent.climb(looks[half], start, lam, 1e-5, 200, [])
            return R, end.converged

        yield from followed(halves, lams, [np.eye(Y.shape[1]) for _, Y in halves], solved)
