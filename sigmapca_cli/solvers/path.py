"""Filters as a function of τ, from linear PCA to linear ICA, or of a, from a = ∞ downwards, on two halves of the rows.

Each answer is the start of the next one. The agreement of the halves along the path shows which τ, or a, the data
support. If filters jump from one knot to the next, the answer has branched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sigmapca_cli.solvers.fourth_moments import ascent
from sigmapca_cli.solvers.fourth_moments.maximum import LARGEST_TENSOR, centred_and_scaled, views
from sigmapca_cli.solvers.independence.solve import solve as independence
from sigmapca_cli.solvers.independence.spectra import are_long_enough, spectra_of
from sigmapca_cli.solvers.knots import Half, Knot, followed
from sigmapca_cli.solvers.newton.solve import solve as newton
from sigmapca_cli.solvers.rows.parallel import threads

Array = np.ndarray

TAUS = (0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.33, 0.6, 1.0)
SCALES = (np.inf, 20.0, 14.0, 10.0, 8.0, 7.0, 6.0, 5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0)
BEGIN = 1 / 3
"""λ whose answer is the start of a path over a: the limit a → ∞ for heavy tails."""


def over_tau(
    halves: Sequence[Half], taus: Sequence[float] = TAUS, *, in_time: bool = False, tol: float = 1e-3
) -> Iterator[Knot]:
    """Yield the knots of a path over increasing τ that starts at the principal axes, τ = 0.

    in_time: each half is a stretch of rows in time, whose spectra stand in the place of variances.
    """
    spectra = [spectra_of(Y) if in_time and are_long_enough((), len(Y)) else None for _, Y in halves]

    def solved(tau: float, half: int, start: Array) -> tuple[Array, bool]:
        found = independence(halves[half][1], tau, spectra=spectra[half], start=start, starts=0, tol=tol)
        return found.R, found.converged

    yield from followed(halves, taus, [np.eye(Y.shape[1]) for _, Y in halves], solved)


def over_a(halves: Sequence[Half], scales: Sequence[float] = SCALES, tol: float = 1e-5) -> Iterator[Knot]:
    """Yield the knots of a path over decreasing a that starts at the maximum of F with λ = 1/3."""
    turns = []
    with threads(None):
        for _, Y in halves:
            view = views(centred_and_scaled(Y)[0], LARGEST_TENSOR)[-1]
            turns.append(ascent.climb(view, np.eye(Y.shape[1]), BEGIN, tol, 200, [])[0])

    def solved(a: float, half: int, start: Array) -> tuple[Array, bool]:
        found = newton(halves[half][1], a=a, start=start, tol=tol)
        return found.R, found.converged

    yield from followed(halves, scales, turns, solved)
