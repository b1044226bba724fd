"""Figures of filters: a grid of patches for images, small plots for other data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.figures.save import GREY, heading, new_figure
from sigmapca_cli.figures.titles import UNIT, format_sigma
from sigmapca_cli.figures.weights import plot_weights
from sigmapca_cli.storage.grid import picture_shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PatchShape = tuple[int, int, int]


def pixels_of(one: Any) -> PatchShape | None:
    """Return (rows, columns, channels) where features of a run or a source are pixels: of patches, or whole arrays."""
    if one.patch_shape is not None:
        rows, columns, channels = (int(n) for n in one.patch_shape)
        return rows, columns, channels
    return picture_shape(getattr(one, "grid", None))


def as_images(W: ArrayLike, patch_shape: PatchShape) -> NDArray[np.float64]:
    """Return filters (p, k) as images (k, rows, columns, channels) in [0, 1], each scaled by its largest |weight|.

    ½ + w / (2 max|w|): a zero weight is mid-grey in every filter, and the brightness shows the sign. The channels of a
    colour filter share the scale. A zero filter is mid-grey everywhere.
    """
    W = np.asarray(W, dtype=np.float64)
    largest = np.abs(W).max(axis=0)
    scaled = 0.5 + W / (2 * np.where(largest > 0, largest, 1.0))
    rows, columns, channels = (int(n) for n in patch_shape)
    return scaled.T.reshape(-1, rows, columns, channels)


def as_rgb(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return images (…, channels) as (…, 3).

    One channel is repeated; two become red and green with a mid-grey blue; more than three become their mean.
    """
    channels = images.shape[-1]
    if channels == 3:
        return images
    if channels == 2:
        return np.concatenate([images, np.full_like(images[..., :1], 0.5)], axis=-1)
    return np.repeat(images.mean(axis=-1, keepdims=True), 3, axis=-1)


def plot_filters(
    W: ArrayLike,
    sigma: ArrayLike | None = None,
    patch_shape: PatchShape | None = None,
    title: str = "",
    columns: int | None = None,
    labels: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    width: float | None = None,
    x_label: str | None = None,
) -> Figure:
    """Draw filters (p, k) in order, row by row, with σ (k,) under each.

    labels (k,): what each is called; its number and σ unless given. patch_shape None: draw weights instead of patches,
    as `plot_weights`. names (p,): of the features. width: of the figure, in inches.
    """
    W = np.asarray(W, dtype=np.float64)  # the place of a column of nan stays empty
    sigma = None if sigma is None else np.asarray(sigma, dtype=np.float64)
    if patch_shape is None:
        return plot_weights(W, sigma, title, columns, labels, names, width, x_label)
    below = labels if labels is not None else None if sigma is None else [format_sigma(s) for s in sigma]
    said = title + (f" (below each filter: σ, {UNIT})" if title and sigma is not None else "")
    return _plot_patches(as_rgb(as_images(W, patch_shape)), below, said, columns, width)


def plot_images(images: NDArray[np.float64], title: str) -> Figure:
    """Draw RGB images (n, rows, columns, 3) in [0, 1] as a grid."""
    return _plot_patches(images, None, title, min(12, len(images)), None)


def grid_columns(k: int) -> int:
    """Return the number of columns of a grid of k items: 8 up to k = 64, then about square."""
    return min(k, 8) if k <= 64 else math.ceil(math.sqrt(k))


def _plot_patches(
    images: Any, below: Sequence[Any] | None, title: str, columns: int | None, fit: float | None
) -> Figure:
    """Draw RGB images (n, rows, columns, 3) with a text below each. fit: the width of the figure in inches."""
    from matplotlib.patches import Rectangle

    # One axes for the whole grid: one per filter would take seconds for 64 filters.
    k, rows, width, _ = images.shape
    columns = columns or grid_columns(k)
    lines = math.ceil(k / columns)
    gap = 0.06
    cell = 0.75 if fit is None else max((fit - 0.1) / columns - gap, 0.05)
    small = 7 if cell > 0.5 else 5
    label = gap if below is None else 0.19 * small / 7
    step_x, step_y = width * (cell + gap) / cell, rows + width * label / cell
    size = fit or max(columns * (cell + gap) + 0.1, 3.2 if title else 0.0)
    figure = new_figure(size, 1.0)
    heading(figure, title)
    above = 0.1 + 0.2 * len(figure.get_suptitle().splitlines())
    figure.set_figheight(lines * step_y / width * cell + above)
    axes = figure.add_subplot()
    for i, image in enumerate(images):
        if np.isnan(image).any():
            continue
        left, top = (i % columns) * step_x, (i // columns) * step_y
        axes.imshow(image, extent=(left, left + width, top + rows, top), interpolation="nearest")
        # A flat filter is nearly white or black: it needs an edge to be visible on the page.
        axes.add_patch(Rectangle((left, top), width, rows, fill=False, edgecolor=GREY, linewidth=0.3))
        if below is not None:
            place = left + width / 2, top + rows + 0.02 * width
            axes.text(*place, str(below[i]), ha="center", va="top", fontsize=small)
    axes.set(
        xlim=(-0.01 * width, columns * step_x - width * 0.05 / cell), ylim=(lines * step_y, 0), aspect="equal"
    )
    axes.axis("off")
    return figure
