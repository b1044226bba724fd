"""Figure of the agreement of halves along a path over τ, a or λ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.figures.save import BLUE, GREY, RED, heading, named, new_figure, tidy
from sigmapca_cli.figures.scales import apply_nines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ALONG = {
    "tau": "τ, weight of the negentropies",
    "a": "a, scale of the nonlinearity (∞ at the right end)",
    "lam": "λ, weight of the fourth cumulants",
}
"""The horizontal axis; λ is of paths that older versions left."""


def plot_path(along: str, knots: Sequence[Any], pca: float, span: float, title: str = "") -> Figure:
    """Draw the agreement over τ, a or λ (log scale), lines for linear PCA and the span, and rings where filters jump.

    knots: `solvers.knots.Knot`. a = ∞ is drawn at twice the largest finite a.
    """
    at = np.array([knot.at for knot in knots])
    finite = at[np.isfinite(at)]
    at = np.where(np.isfinite(at), at, 2 * finite.max(initial=1.0))
    agreement = np.array([knot.agreement for knot in knots])
    jumped = np.array([sum(knot.jumps) > 0 for knot in knots])
    figure = new_figure(4.6, 3.0)
    axes = figure.add_subplot()
    axes.axhline(span, color=GREY, linewidth=0.8, linestyle="--", label="span of the two subspaces")
    axes.axhline(pca, color=RED, linewidth=0.8, label="linear PCA")
    axes.plot(at, agreement, ".-", color=BLUE, linewidth=1.0, markersize=5, label="halves")
    axes.plot(at[jumped], agreement[jumped], "o", color=BLUE, markerfacecolor="none",
              markersize=8, label="filters jumped here")  # fmt: skip
    axes.set_xscale("log")
    named(axes, ALONG[along], "agreement of halves, mean matched |cos|")
    apply_nines(axes, [*agreement, pca, min(span, 1.0)])
    tidy(axes)
    axes.legend(fontsize=7, frameon=False)
    heading(figure, title)
    return figure
