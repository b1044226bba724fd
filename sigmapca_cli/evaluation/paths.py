"""What a path over τ, λ or a says: which values the data support, and whether they support any."""

from __future__ import annotations

from collections.abc import Sequence

from sigmapca_cli.evaluation.agreement import matched_cosine
from sigmapca_cli.solvers.knots import CLOSE, NEAR, Knot, best, good

HALF = 0.5
"""Smallest part of the way from chance to the span limit at which halves are said to agree."""


def supported(knots: Sequence[Knot], span: float, k: int) -> list[float]:
    """Return the values of τ, λ or a at which the halves agree within NEAR of the best; [] if they agree at none.

    Agreement is measured from the level of random axes in a common k-dimensional subspace to the span limit.
    """
    chance = matched_cosine(k, k)
    if best(knots).agreement < chance + HALF * max(span - chance, 0.0) or span <= chance:
        return []
    return [knot.at for knot in good(knots)]


def beside(every_second: float) -> str:
    """Return what is said beside the agreement of two stretches of rows in time."""
    return f" (even and odd rows agree to {every_second:.4f}, because they are nearly the same rows)"


def sentence(along: str, knots: Sequence[Knot], pca: float, span: float, k: int) -> str:
    """Return the last line of a path: the best value and the range around it, or that the data support none."""
    top, near = best(knots), supported(knots, span, k)
    if not near:
        return (
            f"the halves agree at no {along}: {top.agreement:.4f} at best ({along}={top.at:g}), where random axes in a "
            f"common subspace reach {matched_cosine(k, k):.4f}; no {along} fixes the filters on these rows"
        )
    said = f"best: {along}={top.at:g} ({top.agreement:.4f}); within {NEAR} of it from {min(near):g} to {max(near):g}"
    if top.agreement > pca + CLOSE:
        return said
    return f"{said}; no {along} agrees better than linear PCA ({pca:.4f})"
