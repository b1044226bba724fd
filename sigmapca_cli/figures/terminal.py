"""Filters in the terminal, two pixels per character; as a table if the terminal has no colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.figures.filters import PatchShape, as_images, as_rgb
from sigmapca_cli.figures.titles import format_sigma

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

UPPER_HALF = "▀"
GAP = 2


def print_filters(
    W: ArrayLike,
    sigma: ArrayLike,
    patch_shape: PatchShape | None,
    console: Console,
    most: int = 64,
    names: Sequence[str] | None = None,
) -> None:
    """Print up to `most` filters (p, k) with their σ (k,), in colour if `console` has colours, else as a table.

    `names` (p,): names of the features.
    """
    W, sigma = np.asarray(W, dtype=np.float64)[:, :most], np.asarray(sigma, dtype=np.float64)
    wide_enough = patch_shape is not None and console.width >= patch_shape[1] + GAP
    blocks = console.encoding.lower().replace("-", "").startswith("utf")
    if patch_shape is None or not wide_enough or not blocks or not console.is_terminal or console.no_color:
        console.print(filters_as_text(W, sigma, names), highlight=False, soft_wrap=True)
        return
    if console.color_system not in ("truecolor", "256"):
        console.print(filters_as_text(W, sigma), highlight=False, soft_wrap=True)
        return
    images = (as_rgb(as_images(W, patch_shape)) * 255).round().astype(int)
    width = images.shape[2] + GAP
    per_line = max((console.width + GAP) // width, 1)
    for start in range(0, len(images), per_line):
        for line in _picture_lines(images[start : start + per_line]):
            console.print(line, highlight=False, no_wrap=True, crop=False)
        labels = (
            format_sigma(s)[: width - 1].center(width - GAP).ljust(width) for s in sigma[start:][:per_line]
        )
        console.print("".join(labels).rstrip() + "\n", highlight=False, no_wrap=True, crop=False)


def filters_as_text(W: np.ndarray, sigma: np.ndarray, names: Sequence[str] | None = None) -> str:
    """Return a table: number, σ, and the three largest weights of each filter as feature:weight."""
    labels = range(len(W)) if names is None else names
    lines = [f"{'filter':>6}  {'σ':>9}  largest weights (feature:weight)"]
    for i, w in enumerate(W.T):
        largest = np.argsort(-np.abs(w), kind="stable")[:3]
        weights = "  ".join(f"{labels[feature]}:{w[feature]:+.3f}" for feature in largest)
        lines.append(f"{i + 1:>6}  {format_sigma(sigma[i]):>9}  {weights}")
    return "\n".join(lines)


def _picture_lines(images: np.ndarray) -> list[Text]:
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    lines = []
    for top in range(0, images.shape[1], 2):
        line = Text()
        for image in images:
            for column in range(images.shape[2]):
                upper = Color.from_rgb(*image[top, column])
                last = top + 1 >= images.shape[1]
                lower = None if last else Color.from_rgb(*image[top + 1, column])
                line.append(UPPER_HALF, Style(color=upper, bgcolor=lower))
            line.append(" " * GAP)
        lines.append(line)
    return lines
