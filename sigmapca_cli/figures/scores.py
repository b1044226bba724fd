"""Scatter of two components, coloured by a column of the file; with the features as arrows (biplot)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.data.describe.describe import silence_warnings
from sigmapca_cli.data.matrix.concatenated import files_of
from sigmapca_cli.data.readers.row_marks import column
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.figures.save import (
    BLACK,
    BLUE,
    GREY,
    heading,
    literal,
    named,
    new_figure,
    scale_beside,
    tidy,
)
from sigmapca_cli.solution.new_rows import new_source
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito."""
MARKERS = "os^Dv<>P"
"""Classes differ in shape too, for print without colours."""
MOST_POINTS = 5000
MOST_ARROWS = 12
LINE = 0.11
"""Inches from one name of a biplot to the next."""


def plot_scores(
    Y: ArrayLike,
    labels: Sequence[str],
    colour: Sequence[Any] | None = None,
    called: str = "",
    arrows: ArrayLike | None = None,
    names: Sequence[str] = (),
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw two components Y (n, 2), and of a biplot the loadings of the features (p, 2) as arrows.

    labels: of the two axes. colour (n,): the values of the column `called`, classes or numbers. Of more than 12
    features, the arrows of those with the largest loadings are drawn; names (p,).
    """
    Y = np.asarray(Y, dtype=np.float64)
    step = max(len(Y) // MOST_POINTS, 1)
    figure = new_figure(4.2, 3.6, width)
    axes = figure.add_subplot()
    axes.axhline(0, color=GREY, linewidth=0.4)
    axes.axvline(0, color=GREY, linewidth=0.4)
    size = 9 if len(Y) < 500 else 4
    if colour is None:
        _points(axes, Y[::step], size, color=BLUE if arrows is None else "#9DB7C9")
    else:
        _coloured(figure, axes, Y[::step], list(colour)[::step], called, size)
    if arrows is not None:
        _arrows(axes, Y, np.asarray(arrows, dtype=np.float64), names)
    named(axes, labels[0], labels[1])
    tidy(axes)
    heading(figure, title)
    return figure


def _points(axes: Axes, Y: NDArray[np.float64], size: float, **style: Any) -> Any:
    return axes.scatter(Y[:, 0], Y[:, 1], s=size, alpha=0.75, linewidths=0, rasterized=len(Y) > 1000, **style)


def _coloured(
    figure: Figure, axes: Axes, Y: NDArray[np.float64], values: list[Any], called: str, size: float
) -> None:
    """Draw points in the colour of their class with a legend, or of their number with a scale."""
    numbers = as_numbers(values)
    if numbers is not None and len(np.unique(numbers)) > len(PALETTE):
        shown = _points(axes, Y, size, c=numbers, cmap="cividis")
        scale_beside(axes, shown, literal(called))
        return
    texts = np.array(["missing" if value is None else str(value) for value in values])
    classes, counts = np.unique(texts, return_counts=True)
    if len(classes) > len(PALETTE):  # the rarest together, so that colours still differ
        frequent = set(classes[np.argsort(-counts, kind="stable")[: len(PALETTE) - 1]])
        texts = np.array([text if text in frequent else "others" for text in texts])
        classes = np.array([*sorted(frequent), "others"])
    for name, colour, marker in zip(classes, PALETTE, MARKERS, strict=False):
        mine = texts == name
        _points(axes, Y[mine], size * 1.3, color=colour, marker=marker, label=literal(name[:24]))
    figure.legend(title=literal(called), loc="outside lower center", ncols=min(len(classes), 4), fontsize=7,
                  title_fontsize=7, frameon=False, markerscale=1.5, handletextpad=0.1)  # fmt: skip


def as_numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return values as numbers, from numbers or their text; None for words."""
    try:
        return np.array([np.nan if value in (None, "") else float(value) for value in values])
    except (TypeError, ValueError):
        return None


def _arrows(axes: Axes, Y: NDArray[np.float64], loadings: NDArray[np.float64], names: Sequence[str]) -> None:
    """Draw loadings (p, 2) as arrows, the longest nearly as far as the points, with names that keep their distance."""
    from matplotlib.patheffects import withStroke

    length = np.hypot(*loadings.T)
    strongest = np.argsort(-length, kind="stable")[:MOST_ARROWS]
    reach = float(np.nanmax(np.abs(Y)))
    tips = loadings[strongest] * (0.8 * reach / max(float(length.max()), 1e-300))
    for tip in tips:
        axes.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLACK, "linewidth": 0.8,
                      "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7})  # fmt: skip
    limit = 1.2 * reach
    figure: Any = axes.figure
    places = apart(tips * 1.06, 2 * limit * LINE / max(figure.get_figheight() - 0.8, 0.5))
    for feature, tip, place in zip(strongest, tips, places, strict=True):
        axes.plot(*np.stack([tip, place]).T, color=GREY, linewidth=0.4)
        side = "left" if tip[0] >= 0 else "right"
        text = axes.text(place[0], place[1], literal(names[feature][:20]), fontsize=6, ha=side, va="center")
        text.set_path_effects([withStroke(linewidth=1.5, foreground="white")])
    limit = max(limit, float(np.abs(places).max()) * 1.05)
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit))


def apart(places: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Return places of texts (m, 2), those on one side moved up or down until each is `least` below the next."""
    moved = places.copy()
    for side in (places[:, 0] >= 0, places[:, 0] < 0):
        order = np.flatnonzero(side)[np.argsort(-places[side, 1])]
        if not len(order):
            continue
        heights = places[order, 1]
        spread = heights.copy()
        for i in range(1, len(spread)):
            spread[i] = min(spread[i], spread[i - 1] - least)
        moved[order, 1] = spread + (heights - spread).mean()
    return moved


def components_beside(run: Any, name: str) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the components (n, k) of all rows of the run's file, and the values (n,) of one of its columns.

    The column need not be a feature: it may hold words, or be left out by data.drop. A row with missing values has
    components of nan. Raise InputError where the run's data are no table, or have no such column.
    """
    cfg = data_of(run)
    if cfg.name != "array" or cfg.path is None or cfg.transpose:
        raise InputError(f"--colour {name}: the rows of this run are from no table (data={cfg.name})")
    with silence_warnings():  # what there is to say of the file was said
        source = new_source(run, cfg.path, aligned=True)
    values = [value for path in files_of(cfg.path) for value in column(path, cfg, name)]
    if len(values) != source.n:
        raise InputError(f"--colour {name}: it has {len(values)} values for {source.n} rows")
    return np.concatenate(list(Solution.of(run).stream(source))), values
