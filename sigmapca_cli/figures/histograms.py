"""Figure of the distribution of each component, with a Gaussian of the same variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.save import BLUE, GREY, RED, heading, literal, new_figure, panels_across, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 15
RANGE = 5.0
BINS = 51


def plot_histograms(
    Y: ArrayLike,
    title: str = "",
    names: Sequence[str] | None = None,
    width: float | None = None,
) -> Figure:
    """Draw densities of the first 15 columns of Y (n, k), standardised, from −5 to 5, with their excess kurtosis.

    `names` (k,) replace the column numbers. All panels share their scales. Values outside the range count in the
    density but are not drawn.
    """
    from sigmapca_cli.evaluation.metrics import kurtosis

    Y = np.asarray(Y, dtype=np.float64)[:, :MOST_DRAWN]
    std = Y.std(axis=0)
    z = (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    k = z.shape[1]
    columns = panels_across(k, 1.15, 5, width)
    lines = math.ceil(k / columns)
    figure = new_figure(width or max(1.5 * columns, 3.2), 1.35 * lines + 0.9)
    edges = np.linspace(-RANGE, RANGE, BINS + 1)
    grid = np.linspace(-RANGE, RANGE, 201)
    normal = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    densities = [np.histogram(column, edges)[0] / (len(column) * (edges[1] - edges[0])) for column in z.T]
    top = 1.08 * min(max(0.4, *(d.max() for d in densities)), 1.5)
    for i, (density, excess) in enumerate(zip(densities, kurtosis(Y), strict=True)):
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.stairs(density, edges, fill=True, color=BLUE, alpha=0.45, linewidth=0, label="components")
        axes.plot(grid, normal, color=RED, linewidth=1.0, label="Gaussian")
        axes.set_xlim(-RANGE, RANGE)
        axes.set_ylim(0, top)
        called = i + 1 if names is None else literal(names[i][:16])
        axes.set_title(f"{called}   kurtosis {excess:+.2g}", fontsize=7, pad=2)
        tidy(axes)
        axes.tick_params(labelsize=6, labelleft=i % columns == 0, labelbottom=i >= k - columns)
        axes.tick_params(which="minor", left=False)
        if i >= k - columns:  # a label of the whole figure would lie on the legend
            axes.set_xlabel("standard deviations", fontsize=6, labelpad=1)
        axes.axvline(0, color=GREY, linewidth=0.4)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    figure.supylabel("density", fontsize=8)
    heading(figure, title)
    return figure
