"""Figures over the components: their standard deviations with those of linear PCA, and the scree of all eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.save import BLACK, BLUE, RED, heading, named, new_figure, tidy
from sigmapca_cli.figures.titles import UNIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_spectrum(
    sigma: ArrayLike, pca_sigma: ArrayLike | None = None, title: str = "", width: float | None = None
) -> Figure:
    """Draw σ (k,) of a run over the component number, with those of linear PCA as rings.

    The scale is logarithmic if the largest σ is more than 10 times the smallest.
    """
    from matplotlib.ticker import MaxNLocator

    sigma = np.asarray(sigma, dtype=np.float64)
    figure = new_figure(4.6, 3.0, width)
    axes = figure.add_subplot()
    index = np.arange(1, len(sigma) + 1)
    if pca_sigma is not None:
        pca_sigma = np.asarray(pca_sigma, dtype=np.float64)
        axes.plot(np.arange(1, len(pca_sigma) + 1), pca_sigma, "o", color=RED, markerfacecolor="none",
                  markersize=6, label="linear PCA")  # fmt: skip
    axes.plot(index, sigma, ".-", color=BLUE, linewidth=1.0, markersize=5, label="this run")
    positive = sigma[sigma > 0]
    if len(positive) and positive.max() > 10 * positive.min():
        axes.set_yscale("log")
    named(axes, "component", f"standard deviation σ ({UNIT})")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
    axes.tick_params(which="both", labelsize=8)
    if pca_sigma is not None:
        axes.legend(fontsize=8, frameon=False)
    heading(figure, title)
    return figure


MOST_DOTS = 60
STEEP = 300.0
"""Ratio of eigenvalues from which on their axis is logarithmic."""
FLAT = 1e-10
"""Eigenvalues below this share of the largest are rounding errors, which a logarithmic axis leaves out."""


def plot_scree(
    values: ArrayLike,
    chance: ArrayLike | None = None,
    k: int | None = None,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw the eigenvalues (m,), decreasing; those by chance, of columns permuted by themselves; and k as a line.

    Parallel analysis keeps the components above chance, which the legend counts.
    """
    from matplotlib.ticker import MaxNLocator

    from sigmapca_cli.data.n_components import above_chance

    values = np.asarray(values, dtype=np.float64)
    figure = new_figure(4.6, 3.0, width)
    axes = figure.add_subplot()
    shown = values
    if values[0] > STEEP * max(values[-1], 0.0):
        axes.set_yscale("log")
        shown = np.where(values > FLAT * values[0], values, np.nan)
    index = np.arange(1, len(values) + 1)
    axes.plot(index, shown, ".-" if len(values) <= MOST_DOTS else "-", color=BLUE, linewidth=1.0, markersize=5,
              label="data")  # fmt: skip
    if chance is not None:
        chance = np.asarray(chance, dtype=np.float64)
        low = chance > FLAT * values[0]
        axes.plot(np.flatnonzero(low) + 1, chance[low], "--", color=RED, linewidth=1.0,
                  label=f"columns permuted: {above_chance(values, chance)} above")  # fmt: skip
    if k is not None:
        axes.axvline(k + 0.5, color=BLACK, linewidth=0.8, linestyle=":", label=f"k = {k}")
    axes.set_xlim(left=0.3)
    named(axes, "component", "eigenvalue of the covariance")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
    axes.legend(fontsize=7, frameon=False)
    heading(figure, title)
    return figure
