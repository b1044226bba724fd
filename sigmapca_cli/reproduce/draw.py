"""Figures as the paper lays them out: grids of filters, signals under each other, clouds of points."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.figures.filters import as_images, as_rgb, grid_columns
from sigmapca_cli.figures.save import BLACK, BLUE, GREEN, GREY, RED, named, new_figure, tidy
from sigmapca_cli.figures.signals import in_order_of
from sigmapca_cli.reproduce.plan import Panel
from sigmapca_cli.reproduce.results import Missing, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def mosaic(W: Array, patch_shape: tuple[int, int, int], columns: int | None = None) -> Array:
    """Filters (p, k) as one RGB picture, row by row, with white lines between them."""
    pictures = as_rgb(as_images(W, patch_shape))
    k, rows, cols, _ = pictures.shape
    columns = columns or grid_columns(k)
    lines = math.ceil(k / columns)
    canvas = np.ones((lines * (rows + 1) - 1, columns * (cols + 1) - 1, 3))
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (rows + 1), (i % columns) * (cols + 1)
        canvas[top : top + rows, left : left + cols] = picture
    return canvas


def caption(axes: Axes, index: int, text: str, width: int) -> None:
    """(a) and what is shown, below the panel."""
    # Rows of a table bring their own numbers, and there are more of them than letters to use.
    letter = "" if re.match(r"\d+: ", text) else f"({LETTERS[index]}) "
    lines = [textwrap.fill(line, width) for line in (letter + text).split("\n")]
    axes.set_xlabel("\n".join(lines), fontsize=8, labelpad=3)


def empty(axes: Axes, reason: str) -> None:
    """A panel that could not be made says why."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(GREY)
    axes.text(
        0.5, 0.5, textwrap.fill(reason, 30), ha="center", va="center", fontsize=7, transform=axes.transAxes
    )


def nothing(results: Results) -> Figure:
    """A figure none of whose runs could be made."""
    figure = new_figure(4.0, 1.5)
    empty(figure.add_subplot(), next(iter(results.problems.values()), "not run"))
    return figure


def filter_panels(
    results: Results, columns: int, width: float = 2.6, words: float = 0.42, height: float = 0.5
) -> Figure:
    """One grid of filters a panel, in the order of the plan; height: that of a grid over its width."""
    shown = shown_panels(results)
    columns = min(columns, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = new_figure(width * columns, (width * height + words) * lines)
    for i, panel in enumerate(shown):
        axes = figure.add_subplot(lines, columns, i + 1)
        filter_panel(axes, results, panel.key)
        caption(axes, i, panel.caption, int(width * 16))
    return figure


def filter_panel(axes: Axes, results: Results, key: str) -> None:
    """The filters of one run, or the reason why there are none."""
    try:
        W, shape = results.filters(key), results.run(key).patch_shape
    except Missing as missing:
        empty(axes, str(missing))
        return
    assert shape is not None  # filters of image patches
    axes.imshow(mosaic(W, shape), interpolation="nearest", aspect="equal")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def square_filter_panels(results: Results) -> Figure:
    """As `filter_panels` for 64 filters, which make a square."""
    return filter_panels(results, 2, 3.4, 0.35, 1.0)


def signal_panels(results: Results) -> Figure:
    """Columns: sources, mixtures, then what each method recovers, in the order and sign of the sources."""
    shown = shown_panels(results)
    key = next((panel.key for panel in shown if panel.key in results.runs), None)
    if key is None:
        return nothing(results)
    source = results.source(key)
    S, X = source.truth.sources, results.rows(key)
    blocks: list[tuple[str, Array, str, list[str]]] = [
        ("sources", S, GREEN, variances(S)),
        ("mixtures", X, BLACK, variances(X)),
    ]
    for panel in shown:
        try:
            Y, labels = in_order_of(results.components(panel.key), S)
        except Missing:
            continue
        said = [f"{v}{label}" for v, label in zip(variances(Y), labels, strict=True)]
        blocks.append((panel.caption, Y, BLUE, said))
    figure = new_figure(2.5 * len(blocks), 4.2)
    for column, (name, signals, colour, labels) in enumerate(blocks):
        for row, label in enumerate(labels):
            axes = figure.add_subplot(len(labels), len(blocks), row * len(blocks) + column + 1)
            axes.plot(signals[:, row], color=colour, linewidth=0.6)
            axes.set_title(label, fontsize=7, pad=2)
            tidy(axes)
            axes.tick_params(labelsize=6, labelbottom=False)
            axes.set_xlim(0, len(signals))
            if row == len(labels) - 1:
                caption(axes, column, name, 30)
    return figure


def variances(signals: Array) -> list[str]:
    """The variance of each column, as a label."""
    return [f"var {v:.3g}" for v in signals.var(axis=0)]


def point_panels(results: Results) -> Figure:
    """The original cloud, the rotated one, then the components that each method recovers."""
    shown = shown_panels(results)
    key = next((panel.key for panel in shown if panel.key in results.runs), None)
    if key is None:
        return nothing(results)
    clouds: list[tuple[str, Array, str]] = [
        ("original", results.source(key).truth.sources, GREEN),
        (f"rotated by {results.run(key).config['data']['angle']:g}°", results.rows(key), BLACK),
    ]
    for panel in shown:
        try:
            Y = results.components(panel.key)
            clouds.append((f"{panel.caption}\n|cos| {results.measure(panel.key, 'mcc'):.3f}", Y, BLUE))
        except Missing:
            continue
    columns = 5
    lines = math.ceil(len(clouds) / columns)
    figure = new_figure(2.2 * columns, 2.5 * lines)
    for i, (name, points, colour) in enumerate(clouds):
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.scatter(points[:, 0], points[:, 1], s=2, color=colour, alpha=0.5, linewidths=0, rasterized=True)
        limit = 1.05 * np.percentile(np.abs(points), 99.8)
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        axes.axhline(0, color=GREY, linewidth=0.4)
        axes.axvline(0, color=GREY, linewidth=0.4)
        tidy(axes)
        axes.tick_params(labelsize=6)
        caption(axes, i, name, 34)
    return figure


def curve_panel(
    axes: Axes, x: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> None:
    """Lines over one logarithmic axis of a setting that was swept."""
    for colour, (name, y) in zip((BLUE, RED, GREEN, BLACK), lines.items(), strict=False):
        axes.plot(x, y, marker="o", markersize=3, linewidth=1.2, color=colour, label=name)
    axes.set_xscale("log")
    axes.set_xticks(list(x), [f"{value:g}" for value in x])
    axes.minorticks_off()
    named(axes, xlabel, ylabel)
    if len(lines) > 1:
        axes.legend(fontsize=7, frameon=False)
    tidy(axes)


def grid_of(columns: int, width: float = 2.6, words: float = 0.42) -> Callable[[Results], Figure]:
    """`filter_panels` with so many columns and so many inches for the words of a panel."""
    return partial(filter_panels, columns=columns, width=width, words=words)


def shown_panels(results: Results) -> list[Panel]:
    """The panels of the figure."""
    return [panel for panel in results.panels if panel.shown]
