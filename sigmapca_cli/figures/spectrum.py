"""Figure of the standard deviations of the components, with those of linear PCA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.save import BLUE, RED, heading, named, new_figure, tidy
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
