"""Figures of signals: mixed, recovered, and the true sources if they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.evaluation.matching import Array, correlations, match
from sigmapca_cli.figures.save import BLACK, BLUE, GREEN, heading, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CHANNELS = 8
MOST_POINTS = 4000


def plot_signals(
    mixed: ArrayLike,
    recovered: ArrayLike,
    sources: ArrayLike | None = None,
    sample_rate: float | None = None,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw the columns of mixed (n, p), recovered (n, k) and true sources (n, l) over time, one panel per channel.

    With sources, recovered signals have the order and sign of the sources, and their title shows |corr| to them.
    """
    X, Y = np.asarray(mixed, dtype=np.float64), np.asarray(recovered, dtype=np.float64)
    blocks = [("mixed", X, BLACK, [""] * X.shape[1])]
    if sources is None:
        blocks.append(("recovered", Y, BLUE, [""] * Y.shape[1]))
    else:
        S = np.asarray(sources, dtype=np.float64)
        Y, labels = in_order_of(Y, S)
        blocks += [("recovered", Y, BLUE, labels), ("source", S, GREEN, [""] * S.shape[1])]
    lines = min(max(block.shape[1] for _, block, _, _ in blocks), MOST_CHANNELS)
    figure = new_figure(width or 3.2 * len(blocks), 0.95 * lines + 0.7)
    size = 8 if figure.get_figwidth() > 2.2 * len(blocks) else 6
    time, unit = _time(len(X), sample_rate)
    for column, (name, block, colour, labels) in enumerate(blocks):
        for row in range(min(block.shape[1], lines)):
            axes = figure.add_subplot(lines, len(blocks), row * len(blocks) + column + 1)
            _trace(axes, time, block[:, row], colour)
            axes.set_title(f"{name} {row + 1}{labels[row]}", fontsize=size, pad=2)
            last = row == min(block.shape[1], lines) - 1
            axes.tick_params(labelbottom=last)
            if last:
                axes.set_xlabel(unit, fontsize=size)
    figure.supylabel("amplitude (recovered signals: unit variance)", fontsize=8)
    heading(figure, title)
    return figure


def plot_traces(X: ArrayLike, sample_rate: float | None = None, title: str = "") -> Figure:
    """Draw the columns of X (n, p) over time, one panel each."""
    X = np.asarray(X, dtype=np.float64)
    lines = min(X.shape[1], MOST_CHANNELS)
    figure = new_figure(6.4, 0.95 * lines + 0.7)
    time, unit = _time(len(X), sample_rate)
    for row in range(lines):
        axes = figure.add_subplot(lines, 1, row + 1)
        _trace(axes, time, X[:, row], BLUE)
        axes.tick_params(labelbottom=row == lines - 1)
        axes.set_ylabel(f"{row + 1}", fontsize=8, rotation=0)
    axes.set_xlabel(unit, fontsize=8)
    figure.supylabel("channel", fontsize=8)
    if title or lines < X.shape[1]:
        figure.suptitle(
            title + (f" (first {lines} of {X.shape[1]})" if lines < X.shape[1] else ""), fontsize=9
        )
    return figure


def in_order_of(Y: Array, S: Array) -> tuple[Array, list[str]]:
    """Return Y with its columns in the order and sign of the matched sources, unmatched ones last, and their labels."""
    similarity = correlations(Y, S)
    rows, columns = match(similarity)
    order = [int(row) for row in rows[np.argsort(columns)]]
    pairs = list(zip(order, sorted(columns.tolist()), strict=True))
    signs = [np.sign((Y[:, r] - Y[:, r].mean()) @ S[:, c]) or 1.0 for r, c in pairs]
    labels = [f", |corr| {similarity[r, c]:.3f}" for r, c in pairs]
    rest = [i for i in range(Y.shape[1]) if i not in order]
    return Y[:, order + rest] * np.array(signs + [1.0] * len(rest)), labels + [""] * len(rest)


def _time(n: int, sample_rate: float | None) -> tuple[Array, str]:
    return (
        (np.arange(n) / sample_rate, "time (seconds)")
        if sample_rate
        else (np.arange(n, dtype=np.float64), "time (samples)")
    )


def _trace(axes: Axes, time: Array, value: Array, colour: str) -> None:
    if len(value) <= MOST_POINTS:
        axes.plot(time, value, color=colour, linewidth=0.7)
    else:
        # Too many points for the pixels: draw the envelope, the smallest and the largest value of each stretch.
        starts = np.linspace(0, len(value), MOST_POINTS // 2, endpoint=False).astype(int)
        low, high = np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)
        axes.fill_between(time[starts], low, high, color=colour, linewidth=0.3)
    axes.set_xlim(time[0], time[-1])
    tidy(axes)
    axes.tick_params(labelsize=7)
