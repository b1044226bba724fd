"""The knots of a path: how well two halves of the rows agree at one value, and which values are good."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.linalg.rotations import matches

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)

JUMP = 0.9
"""A filter jumps if its |cos| with the same filter at the knot before is below this."""
NEAR = 0.01
"""An agreement less than this below the largest of the path counts as good."""
CLOSE = 0.002
"""Difference of agreement that is too small to decide."""


@dataclass(frozen=True)
class Knot:
    """The results at one value of τ, a or λ.

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


def followed(
    halves: Sequence[Half],
    values: Sequence[float],
    turns: Sequence[Array],
    solved: Callable[[float, int, Array], tuple[Array, bool]],
) -> Iterator[Knot]:
    """Yield the knots of a path over these values, each answer of which is the start of the next one.

    turns: rotations of both halves before the first; solved(value, half, start): rotation of a half, and whether it
    converged.
    """
    for at in values:
        now, converged = zip(*(solved(at, i, R) for i, R in enumerate(turns)), strict=True)
        even, odd = (int((matches(R, S) < JUMP).sum()) for R, S in zip(turns, now, strict=True))
        yield Knot(float(at), agreement(halves, now), (even, odd), all(converged))
        turns = now


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
