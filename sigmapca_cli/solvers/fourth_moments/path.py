"""Filters as a function of λ, from linear PCA to linear ICA, or of a, from a = ∞ downwards, on two halves of the rows.

Each answer is the start of the next one. The agreement of the halves along the path shows which λ, or a, the data
support. If filters jump from one knot to the next, the answer has branched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.data.standardisation import GAP
from sigmapca_cli.solvers.fourth_moments import ascent
from sigmapca_cli.solvers.fourth_moments.maximum import LAMBDA, LARGEST, centred_and_scaled, matches, views
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.solvers.rows.parallel import threads
from sigmapca_cli.system.row_shards import place

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)

LAMS = (0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.33, 0.5, 1.0, 2.0, 3.0)
SCALES = (np.inf, 20.0, 14.0, 10.0, 8.0, 7.0, 6.0, 5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0)
JUMP = 0.9
"""A filter jumps if its |cos| with the same filter at the knot before is below this."""
NEAR = 0.01
"""An agreement less than this below the largest of the path counts as good."""
STRETCHES, CLOSE = 64, 0.002
"""For lam=auto: number of stretches of rows, which form the two halves alternately; difference of agreement that is too
small to decide."""
BEGIN = 1 / 3
"""λ whose answer is the start of a path over a: the limit a → ∞ for heavy tails."""


@dataclass(frozen=True)
class Knot:
    """The results at one value of λ or a.

    agreement: mean matched |cos| between the filters of the halves; jumps: number of filters of each half that jumped
    since the knot before; converged: whether both halves converged.
    """

    at: float
    agreement: float
    jumps: tuple[int, int]
    converged: bool


def span(halves: Sequence[Half]) -> float:
    """Return the mean cosine of the principal angles between the two subspaces.

    It is about the largest agreement that filters in the two subspaces can reach.
    """
    (P, _), (Q, _) = halves
    return float(np.linalg.svd(P.T @ Q, compute_uv=False).mean())


def agreement(halves: Sequence[Half], turns: Sequence[Array] | None) -> float:
    """Return the mean matched |cos| between the filters P·R of the halves; None: R = I, linear PCA."""
    (P, _), (Q, _) = halves
    if turns is None:
        return float(matches(P, Q).mean())
    return float(matches(P @ turns[0], Q @ turns[1]).mean())


def over_lam(halves: Sequence[Half], lams: Sequence[float] = LAMS, tol: float = 1e-5) -> Iterator[Knot]:
    """Yield the knots of a path over increasing λ that starts at the principal axes."""
    with threads(None):
        looks = [views(centred_and_scaled(Y)[0], LARGEST)[-1] for _, Y in halves]
        turns = [np.eye(Y.shape[1]) for _, Y in halves]
        for lam in lams:
            found = [ascent.climb(view, R, lam, tol, 200, []) for view, R in zip(looks, turns, strict=True)]
            yield make_knot(lam, halves, turns, [R for R, _ in found], all(end.converged for _, end in found))
            turns = [R for R, _ in found]


def over_a(halves: Sequence[Half], scales: Sequence[float] = SCALES, tol: float = 1e-5) -> Iterator[Knot]:
    """Yield the knots of a path over decreasing a that starts at the maximum of F with λ = 1/3."""
    turns = []
    with threads(None):
        for _, Y in halves:
            view = views(centred_and_scaled(Y)[0], LARGEST)[-1]
            turns.append(ascent.climb(view, np.eye(Y.shape[1]), BEGIN, tol, 200, [])[0])
    for a in scales:
        found = [solve(Y, a=a, start=R, tol=tol) for (_, Y), R in zip(halves, turns, strict=True)]
        yield make_knot(
            a, halves, turns, [result.R for result in found], all(result.converged for result in found)
        )
        turns = [result.R for result in found]


def make_knot(
    at: float, halves: Sequence[Half], before: Sequence[Array], now: Sequence[Array], converged: bool
) -> Knot:
    """Return the knot at `at`, from the rotations of both halves before the step and now."""
    even, odd = (int((matches(R, S) < JUMP).sum()) for R, S in zip(before, now, strict=True))
    return Knot(float(at), agreement(halves, now), (even, odd), converged)


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


def best(knots: Sequence[Knot]) -> Knot:
    """Return the knot at which the halves agree best."""
    return max(knots, key=lambda knot: knot.agreement)


def good(knots: Sequence[Knot]) -> list[Knot]:
    """Return the best knot and the unbroken range of knots around it at which the halves agree almost as well."""
    top = best(knots)
    place, least = list(knots).index(top), top.agreement - NEAR
    low = high = place
    while low > 0 and knots[low - 1].agreement >= least:
        low -= 1
    while high + 1 < len(knots) and knots[high + 1].agreement >= least:
        high += 1
    return list(knots[low : high + 1])
