"""Figures of points in the plane, with the axes that methods found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.evaluation.matching import cosines, match
from sigmapca_cli.figures.save import (
    BLACK,
    BLUE,
    GREY,
    RED,
    heading,
    literal,
    named,
    new_figure,
    panels_across,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 3000


def plot_scatter(
    X: ArrayLike,
    solutions: Mapping[str, ArrayLike],
    truth: ArrayLike | None = None,
    title: str = "",
    names: Sequence[str] | None = None,
    width: float | None = None,
) -> Figure:
    """Draw one panel per solution: points X (n, 2), and the columns of its filters W (2, k) as axes through the mean.

    `names`: of the two features.

    An axis extends 2.5 standard deviations of the points along it, to both sides. The true axes (2, l) are dashed and
    longer; the title shows the matched |cos| to them.
    """
    X = np.asarray(X, dtype=np.float64)
    centre = X.mean(axis=0)
    columns = panels_across(len(solutions), 2.4, len(solutions), width)
    lines = -(-len(solutions) // columns)
    figure = new_figure(2.7 * columns, 3.0 * lines + (0.25 if title else 0), width)
    shown = X[:: max(len(X) // MOST_POINTS, 1)]
    limit = 1.08 * np.abs(shown - centre).max()
    for i, (name, W) in enumerate(solutions.items()):
        W = np.asarray(W, dtype=np.float64)
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.scatter(shown[:, 0], shown[:, 1], s=3, color=GREY, alpha=0.35, linewidths=0, rasterized=True)
        for w in (W / np.linalg.norm(W, axis=0)).T:
            axes.axline(centre, centre + w, color="white", linewidth=2.6)
        if truth is not None:
            for e in np.asarray(truth, dtype=np.float64).T:
                axes.axline(centre, centre + e, color=BLACK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
        for w in (W / np.linalg.norm(W, axis=0)).T:
            reach = 2.5 * ((X - centre) @ w).std() * w
            axes.plot(*np.stack([centre - reach, centre + reach]).T, color=RED, linewidth=2.0, zorder=4)
        axes.set(
            xlim=centre[0] + np.array([-limit, limit]),
            ylim=centre[1] + np.array([-limit, limit]),
            aspect="equal",
        )
        axes.set_title(name + _similarity(W, truth), fontsize=8)
        _name_axes(axes, names)
        tidy(axes)
        axes.tick_params(labelsize=7)
    heading(figure, title)
    return figure


def plot_points(X: ArrayLike, title: str = "", names: Sequence[str] | None = None) -> Figure:
    """Draw points X (n, 2); `names`: of the two features."""
    X = np.asarray(X, dtype=np.float64)
    figure = new_figure(3.6, 3.4)
    axes = figure.add_subplot()
    shown = X[:: max(len(X) // MOST_POINTS, 1)]
    axes.scatter(shown[:, 0], shown[:, 1], s=3, color=BLUE, alpha=0.5, linewidths=0, rasterized=True)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=9)
    _name_axes(axes, names)
    tidy(axes)
    return figure


def _name_axes(axes: Any, names: Sequence[str] | None) -> None:
    """Name the two axes by the features; those without names have numbers, from 1."""
    first, second = ("feature 1", "feature 2") if names is None else (literal(name) for name in names)
    named(axes, first, second)


def _similarity(W: np.ndarray, truth: ArrayLike | None) -> str:
    if truth is None:
        return ""
    similarity = cosines(W, truth)
    return f", |cos| {similarity[match(similarity)].mean():.3f}"
