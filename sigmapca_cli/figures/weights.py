"""Figures of the weights of features: bars with names, or curves over numbers such as wavelengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.figures.save import BLUE, GREY, heading, literal, new_figure, panels_across, tidy
from sigmapca_cli.figures.titles import format_sigma

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
MOST_PANELS = 32
MOST_NAMES = 30
"""Largest number of bars; of more named features those with the largest weights are drawn."""
UNNAMED_BARS = 16
"""Largest number of features without names that are drawn as bars."""
LONGEST = 24


def plot_weights(
    W: ArrayLike,
    sigma: ArrayLike | None = None,
    title: str = "",
    columns: int | None = None,
    labels: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    width: float | None = None,
    x_label: str | None = None,
    called: str = "weight",
) -> Figure:
    """Draw the weights W (p, k) of features, one panel a component, all with one scale.

    Features with names are horizontal bars; where the names are numbers, such as wavelengths or times, a curve over
    these. labels (k,): what each panel is called, its number and σ (k,) unless given. A column of nan stays empty.
    x_label: what the numbers in names are. called: what the values are.
    """
    W = np.asarray(W, dtype=np.float64)
    shown = min(W.shape[1], MOST_PANELS)
    if labels is None:
        labels = [f"{i + 1}" for i in range(shown)]
        if sigma is not None:
            labels = [f"{i}   σ {format_sigma(s)}" for i, s in zip(labels, np.asarray(sigma), strict=False)]
    more = f" (first {shown} of {W.shape[1]})" if shown < W.shape[1] else ""
    W = W[:, :shown]
    at = None if names is None else numbers_of(names)
    if names is not None and at is None:
        figure = _bars(W, title + more, columns, labels, names, width)
        figure.supxlabel(called, fontsize=8)
    else:
        figure = _curves(W, title + more, columns, labels, at, width, x_label)
        figure.supylabel(called, fontsize=8)
    return figure


def numbers_of(names: Sequence[str]) -> Array | None:
    """Return the numbers that names of columns are, where they rise or fall throughout; None for other names."""
    try:
        at = np.array([float(name) for name in names])
    except ValueError:
        return None
    steps = np.diff(at)
    return at if np.isfinite(at).all() and len(at) > 2 and ((steps > 0).all() or (steps < 0).all()) else None


def short_name(name: str) -> str:
    """Return a name for the side of an axis, cut where it is long."""
    return literal(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def _bars(
    W: Array,
    title: str,
    columns: int | None,
    labels: Sequence[Any],
    names: Sequence[str],
    width: float | None,
) -> Figure:
    """Draw a horizontal bar for each feature; the names stand once a line of panels."""
    p, shown = W.shape
    index = np.arange(p)
    if p > MOST_NAMES:
        strongest = np.argsort(-np.nan_to_num(np.abs(W)).max(axis=1), kind="stable")[:MOST_NAMES]
        index = np.sort(strongest)
        title += f" ({MOST_NAMES} of {p} features: the largest weights)" if title else ""
    written = [short_name(names[i]) for i in index.tolist()]
    beside = 0.075 * max(map(len, written))
    room = None if width is None else max(width - beside, 0.6)
    columns = columns or panels_across(shown, 0.6, 4, room)
    lines = math.ceil(shown / columns)
    height = lines * (0.125 * len(index) + 0.45) + 0.3
    figure = new_figure(width or max(1.4 * columns + beside + 0.2, 3.2), height)
    limit = np.nanmax(np.abs(W)) * 1.1 or 1.0
    for i, axes in _panels(figure, W, columns, labels):
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.barh(np.arange(len(index)), W[index, i], color=BLUE, height=0.7)
        axes.set(xlim=(-limit, limit), ylim=(len(index) - 0.4, -0.6))
        tidy(axes)
        axes.set_yticks(np.arange(len(index)), written if i % columns == 0 else [])
        axes.tick_params(axis="y", length=0, labelsize=7)
        axes.locator_params(axis="x", nbins=3)
        axes.tick_params(axis="x", labelsize=6, labelbottom=i >= shown - columns)
    heading(figure, title)
    return figure


def _panels(figure: Figure, W: Array, columns: int, labels: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the number and the titled axes of each column of W that is not empty (nan)."""
    lines = math.ceil(W.shape[1] / columns)
    for i in range(W.shape[1]):
        if not np.isnan(W[:, i]).any():
            axes = figure.add_subplot(lines, columns, i + 1)
            axes.set_title(str(labels[i]), fontsize=8, pad=2)
            yield i, axes


def _curves(
    W: Array,
    title: str,
    columns: int | None,
    labels: Sequence[Any],
    at: Array | None,
    width: float | None,
    x_label: str | None,
) -> Figure:
    """Draw the weights over the numbers of the features, or over those that name them; few of them as bars."""
    p, shown = W.shape
    columns = columns or panels_across(shown, 1.4, 4, width)
    lines = math.ceil(shown / columns)
    figure = new_figure(width or max(2.0 * columns, 3.2), 1.2 * lines + (0.45 if title else 0.1))
    limit = np.nanmax(np.abs(W)) * 1.1 or 1.0
    for i, axes in _panels(figure, W, columns, labels):
        axes.axhline(0, color=GREY, linewidth=0.6)
        if at is None and p <= UNNAMED_BARS:
            axes.bar(np.arange(p), W[:, i], color=BLUE, width=0.75)
            axes.set_xticks(np.arange(0, p, 1 if p <= 8 else 4))
        else:
            x = np.arange(p) if at is None else at
            axes.plot(x, W[:, i], color=BLUE, linewidth=0.9)
            axes.set_xlim(x[0], x[-1])  # wavenumbers fall from left to right, as in their file
            axes.locator_params(axis="x", nbins=4)
        axes.set_ylim(-limit, limit)
        tidy(axes)
        axes.tick_params(labelsize=7, labelleft=i % columns == 0, labelbottom=i >= shown - columns)
    heading(figure, title)
    figure.supxlabel(literal(x_label or ("feature" if at is None else "name of the column")), fontsize=8)
    return figure
