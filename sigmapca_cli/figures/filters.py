"""Figures of filters: a grid of patches for images, small plots for other data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.figures.save import BLUE, GREY, literal, new_figure, tidy
from sigmapca_cli.figures.titles import UNIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PatchShape = tuple[int, int, int]
MOST_PANELS = 32
MOST_NAMES = 30


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
    numbers: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw filters (p, k) in order, row by row, with σ (k,) under each.

    patch_shape None: draw weights instead of patches, each filter with its number (1 to k, or `numbers`); `names`
    (p,): names of the features.
    """
    W = np.asarray(W, dtype=np.float64)  # the place of a column of nan stays empty
    sigma = None if sigma is None else np.asarray(sigma, dtype=np.float64)
    if patch_shape is None:
        return _plot_weights(W, sigma, title, columns, numbers or range(1, W.shape[1] + 1), names)
    return _plot_patches(as_rgb(as_images(W, patch_shape)), sigma, title, columns)


def plot_images(images: NDArray[np.float64], title: str = "", columns: int = 12) -> Figure:
    """Draw RGB images (n, rows, columns, 3) in [0, 1] as a grid."""
    return _plot_patches(images, None, title, min(columns, len(images)))


def grid_columns(k: int) -> int:
    """Return the number of columns of a grid of k items: 8 up to k = 64, then about square."""
    return min(k, 8) if k <= 64 else math.ceil(math.sqrt(k))


def _plot_patches(images: Any, sigma: Any, title: str, columns: int | None) -> Figure:
    from matplotlib.patches import Rectangle

    # One axes for the whole grid: one per filter would take seconds for 64 filters.
    k, rows, width, _ = images.shape
    columns = columns or grid_columns(k)
    lines = math.ceil(k / columns)
    cell = 0.75
    label = 0.19 if sigma is not None else 0.06
    step_x, step_y = width * (cell + 0.06) / cell, rows + width * label / cell
    size = max(columns * (cell + 0.06) + 0.1, 3.2 if title else 0.0)
    title += f" (below each filter: σ, {UNIT})" if title and sigma is not None else ""
    title = textwrap.fill(title, int(size * 13))
    heading = 0.1 + 0.2 * len(title.splitlines())
    figure = new_figure(size, lines * step_y / width * cell + heading)
    axes = figure.add_subplot()
    for i, image in enumerate(images):
        if np.isnan(image).any():
            continue
        left, top = (i % columns) * step_x, (i // columns) * step_y
        axes.imshow(image, extent=(left, left + width, top + rows, top), interpolation="nearest")
        # A flat filter is nearly white or black: it needs an edge to be visible on the page.
        axes.add_patch(Rectangle((left, top), width, rows, fill=False, edgecolor=GREY, linewidth=0.3))
        if sigma is not None:
            axes.text(
                left + width / 2,
                top + rows + 0.02 * width,
                format_sigma(sigma[i]),
                ha="center",
                va="top",
                fontsize=7,
            )
    axes.set(
        xlim=(-0.01 * width, columns * step_x - width * 0.05 / cell), ylim=(lines * step_y, 0), aspect="equal"
    )
    axes.axis("off")
    if title:
        figure.suptitle(title, fontsize=9)
    return figure


def format_sigma(value: float) -> str:
    """Return σ as text, to three figures: 12.3, 0.0123, 1.2e-5."""
    return f"{value:.3g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


def _plot_weights(
    W: Any,
    sigma: Any,
    title: str,
    columns: int | None,
    numbers: Sequence[int],
    names: Sequence[str] | None = None,
) -> Figure:
    p, k = W.shape
    named = names is not None and p <= MOST_NAMES
    shown = min(k, MOST_PANELS)
    columns = columns or min(shown, 4)
    lines = math.ceil(shown / columns)
    figure = new_figure(max(2.0 * columns, 3.2), 1.2 * lines + (0.45 if title else 0.1) + 0.7 * named)
    limit = np.nanmax(np.abs(W[:, :shown])) * 1.1 or 1.0
    for i in range(shown):
        if np.isnan(W[:, i]).any():
            continue
        axes = figure.add_subplot(lines, columns, i + 1)
        axes.axhline(0, color=GREY, linewidth=0.6)
        if p <= 16 or named:
            axes.bar(np.arange(p), W[:, i], color=BLUE, width=0.75)
            axes.set_xticks(np.arange(0, p, 1 if p <= 8 or named else 4))
        else:
            axes.plot(W[:, i], color=BLUE, linewidth=0.9)
        axes.set_ylim(-limit, limit)
        tidy(axes)
        axes.tick_params(labelsize=7, labelleft=i % columns == 0, labelbottom=i >= shown - columns)
        if named and names is not None and i >= shown - columns:
            axes.set_xticklabels([literal(name[:20]) for name in names], rotation=90, fontsize=6)
        name = f"{numbers[i]}" if sigma is None else f"{numbers[i]}   σ {format_sigma(sigma[i])}"
        axes.set_title(name, fontsize=8, pad=2)
    if title or shown < k:
        figure.suptitle(title + (f" (first {shown} of {k})" if shown < k else ""), fontsize=9)
    if not named:
        figure.supxlabel("feature", fontsize=8)
    figure.supylabel("weight", fontsize=8)
    return figure
