"""Filters of gridded data, such as maps through time, drawn as maps; cells that are no feature stay empty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.figures.save import heading, literal, new_figure, tidy
from sigmapca_cli.figures.titles import format_sigma
from sigmapca_cli.figures.weights import MOST_PANELS
from sigmapca_cli.storage.grid import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = "RdBu_r"
"""Blue for negative weights, white for zero, red for positive ones."""
EMPTY = 0.8
"""Grey of a cell that is no feature, such as land in a map of the sea."""
MOST_LAYERS = 8
"""Largest number of layers of a grid of three dimensions that are drawn side by side."""


def is_drawn(grid: Grid | None) -> TypeGuard[Grid]:
    """Return whether filters on this grid are drawn as maps: two dimensions, or three of which one is short."""
    if grid is None or len(grid.shape) not in (2, 3) or sorted(grid.shape)[-2] < 2:
        return False
    return len(grid.shape) == 2 or min(grid.shape) <= MOST_LAYERS


def plot_maps(
    W: ArrayLike,
    sigma: ArrayLike | None,
    grid: Grid,
    title: str = "",
    labels: Sequence[str] | None = None,
    columns: int = 4,
    width: float | None = None,
) -> Figure:
    """Draw filters (p, k) as maps, each scaled by its largest weight, with σ (k,) above.

    Layers of one filter stand in a row. Greater coordinates are to the right and above; without coordinates, the first
    row is above. labels (k,): what each is called; its number and σ unless given. width: of the figure, in inches.
    """
    maps = grid.maps(np.asarray(W, dtype=np.float64))
    layer = int(np.argmin(grid.shape)) if len(grid.shape) == 3 else None
    plane = [i for i in range(len(grid.shape)) if i != layer]
    each = 1 if layer is None else grid.shape[layer]
    maps = maps if layer is None else np.moveaxis(maps, layer + 1, 1)
    shown = min(len(maps), max(1, MOST_PANELS // each))
    columns = each if layer is not None else min(shown, columns)
    lines = math.ceil(shown * each / columns)
    ratio = grid.shape[plane[0]] / grid.shape[plane[1]]
    size = width or max(2.3 * columns, 3.2)
    height = (size / columns - 0.3) * min(max(ratio, 0.4), 2.5)
    figure = new_figure(size, (height + 0.3) * lines + (0.4 if title else 0.1))
    heading(figure, title + (f" (first {shown} of {len(maps)})" if shown < len(maps) else ""))
    for number in range(shown * each):
        i, depth = divmod(number, each)
        axes = figure.add_subplot(lines, columns, number + 1)
        draw_map(axes, maps[i] if layer is None else maps[i, depth], grid, plane, float(abs_max(maps[i])))
        axes.tick_params(
            labelsize=7, labelleft=number % columns == 0, labelbottom=number >= shown * each - columns
        )
        name = labels[i] if labels else f"{i + 1}"
        if sigma is not None:
            name += f"   σ {format_sigma(float(np.asarray(sigma)[i]))}"
        axes.set_title(name + layer_words(grid, layer, depth), fontsize=8, pad=2)
    if grid.names:
        figure.supxlabel(literal(grid.names[plane[1]]), fontsize=8)
        figure.supylabel(literal(grid.names[plane[0]]), fontsize=8)
    return figure


def draw_map(axes: Any, values: NDArray[Any], grid: Grid, plane: Sequence[int], limit: float) -> None:
    """Draw values (rows, columns) on two dimensions of a grid; ±limit have the strongest colours."""
    y, x = (axis_of(grid, i) for i in plane)
    axes.set_facecolor(str(EMPTY))
    axes.pcolormesh(x, y, values, cmap=COLOURS, vmin=-limit, vmax=limit, shading="nearest", rasterized=True)
    if values_along(grid, plane[0]) is None:
        axes.invert_yaxis()
    tidy(axes)


def abs_max(maps: NDArray[Any], axis: tuple[int, ...] | None = None) -> Any:
    """Return the largest |value| of maps, 1 where all are 0 or missing."""
    found = np.nanmax(np.abs(maps), axis=axis, initial=0.0, keepdims=axis is not None)
    return np.where(found > 0, found, 1.0)


def map_images(W: ArrayLike, grid: Grid) -> NDArray[np.float64]:
    """Return filters (p, k) on a grid of two dimensions as images (k, rows, columns, 3) in [0, 1], as `plot_maps`."""
    from matplotlib import colormaps

    maps = grid.maps(np.asarray(W, dtype=np.float64))
    y, x = (values_along(grid, i) for i in range(2))
    if y is not None and y[0] < y[-1]:
        maps = maps[:, ::-1]
    if x is not None and x[0] > x[-1]:
        maps = maps[:, :, ::-1]
    images = colormaps[COLOURS](0.5 + maps / (2 * abs_max(maps, (1, 2))))[..., :3]
    images[np.isnan(maps)] = EMPTY
    return np.asarray(images)


def values_along(grid: Grid, dimension: int) -> Any:
    """Return the coordinates along a dimension, if they rise or fall throughout; else None."""
    values = grid.coordinates[dimension] if grid.coordinates else None
    if values is None or len(values) < 2:
        return None
    steps = np.diff(values)
    return values if (steps > 0).all() or (steps < 0).all() else None


def axis_of(grid: Grid, dimension: int) -> Any:
    """Return where the cells along a dimension are drawn: at their coordinates, else at their numbers."""
    values = values_along(grid, dimension)
    return np.arange(grid.shape[dimension]) if values is None else values


def layer_words(grid: Grid, layer: int | None, depth: int) -> str:
    """Return what a layer is called behind the number of its filter."""
    if layer is None:
        return ""
    values = values_along(grid, layer)
    value = str(depth) if values is None else f"{values[depth]:g}"
    return f"   {grid.names[layer]} {value}" if grid.names else f"   layer {value}"
