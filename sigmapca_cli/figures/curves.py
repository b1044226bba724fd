"""Figures of curves: the logged metrics of a run over its steps, and the agreement of halves along a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.save import BLUE, GREY, RED, heading, named, new_figure, panels_across, tidy
from sigmapca_cli.figures.scales import apply_nines
from sigmapca_cli.figures.titles import UNIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "loss": f"loss (square of {UNIT})",
    "mcc": "MCC, matched |cos| to the truth",
    "gradient_norm": "gradient norm",
    "agreement": "agreement, matched |cos|",
}


def plot_curves(metrics: Mapping[str, ArrayLike], title: str = "", width: float | None = None) -> Figure:
    """Draw one panel for each metric of LABELS with finite values, over metrics["step"].

    More than 200 points are drawn faintly, with their running mean on top, because the losses of batches are noisy.
    """
    series = _finite_series(metrics)
    columns = panels_across(len(series), 2.4, max(len(series), 1), width)
    lines = -(-len(series) // columns) or 1
    figure = new_figure(3.6 * columns, 2.7 * lines, width)
    axes = None
    for i, (name, (step, value)) in enumerate(series.items()):
        axes = figure.add_subplot(lines, columns, i + 1)
        window = max(len(value) // 50, 1) if len(value) > 200 else 1
        faint = window > 1
        axes.plot(step, value, color=BLUE, alpha=0.25 if faint else 1.0, linewidth=0.7 if faint else 1.3,
                  marker="" if len(value) > 40 else "o", markersize=3)  # fmt: skip
        if faint:
            axes.plot(step[window // 2 : window // 2 + len(value) - window + 1], running_mean(value, window),
                      color=BLUE, linewidth=1.5)  # fmt: skip
            low, high = np.percentile(value, [0.5, 99.5])
            axes.set_ylim(min(low, value[-1]) - 0.05 * (high - low), high + 0.1 * (high - low) or None)
        if name in ("mcc", "agreement"):
            apply_nines(axes, value)
        named(axes, "step", LABELS[name])
        tidy(axes)
    if axes is None:
        figure.text(0.5, 0.5, "nothing was logged", ha="center", va="center", fontsize=9)
    heading(figure, title)
    return figure


def running_mean(value: np.ndarray, window: int) -> np.ndarray:
    """Return the means of `window` neighbouring values, (n − window + 1,)."""
    total = np.cumsum(np.insert(value, 0, 0.0))
    return (total[window:] - total[:-window]) / window


def _finite_series(metrics: Mapping[str, ArrayLike]) -> dict[str, Any]:
    series = {}
    for name in LABELS:
        if name not in metrics:
            continue
        value = np.asarray(metrics[name], dtype=np.float64)
        step = np.asarray(metrics["step"], dtype=np.float64) if "step" in metrics else np.arange(len(value))
        good = np.isfinite(value)
        if value.ndim == 1 and good.any():
            series[name] = (step[good], value[good])
    return series


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
