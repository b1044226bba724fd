"""The filters of all runs as small SVG pictures; sliders over the swept settings choose the run that is shown."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.figures.filters import PatchShape, as_images, as_rgb, pixels_of
from sigmapca_cli.figures.maps import is_drawn, map_images
from sigmapca_cli.figures.titles import format_sigma
from sigmapca_cli.report.gather import Report, axes_of, last_loss, scalar
from sigmapca_cli.report.page import Gallery, Panel, Picture, Text, data_uri
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.storage.read import StoredRun

Array = NDArray[np.float64]

MOST_WEIGHTS = 32
"""Largest number of filters drawn as lines or bars."""
MOST_POINTS = 256
"""Largest number of points of a line."""
SIZES: tuple[tuple[int, int | None], ...] = ((64, None), (64, 64), (36, 64), (16, 32))
"""Sizes of a picture, the largest first: number of filters, and number of colours in the PNG (None: all)."""


def filter_grid(
    W: Array,
    sigma: Array | None,
    shape: PatchShape | None,
    most: int = 64,
    palette: int | None = None,
    names: Sequence[str] | None = None,
    grid: Grid | None = None,
) -> str:
    """Return SVG of the first filters (p, k), with σ (k,) for each; `names` (p,): of features that are not pixels."""
    drawn, few = W[:, :most], None if sigma is None else sigma[:most]
    if shape is not None:
        images = as_rgb(as_images(drawn, shape))
    elif is_drawn(grid) and len(grid.shape) == 2:
        images = map_images(drawn, grid)
    else:
        return weight_grid(W, sigma, min(most, MOST_WEIGHTS), names)
    return image_grid(images, few, palette)


def image_grid(images: Array, sigma: Array | None, palette: int | None = None) -> str:
    """Return images (k, rows, columns, 3) as one PNG with transparent gaps; a unit of the SVG is one pixel."""
    k, rows, width, _ = images.shape
    columns = min(k, 8)
    lines = math.ceil(k / columns)
    gap = max(1, round(width / 11))
    text = 0.0 if sigma is None else width * 0.33
    step_x, step_y = width + gap, rows + gap + math.ceil(text)
    canvas = np.zeros((lines * step_y, columns * step_x, 4), dtype=np.uint8)
    parts = []
    for i, image in enumerate(images):
        left, top = (i % columns) * step_x, (i // columns) * step_y
        canvas[top : top + rows, left : left + width, :3] = np.round(255 * np.clip(image, 0, 1))
        canvas[top : top + rows, left : left + width, 3] = 255
        parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{width}" height="{rows}"/>')
        if sigma is not None:
            parts.append(
                f'<text class="tick" x="{left + width / 2:g}" y="{top + rows + text * 0.85:.2f}" text-anchor="middle">'
                f"{format_sigma(float(sigma[i]))}</text>"
            )
    height, full = canvas.shape[0], canvas.shape[1] - gap
    picture = (
        f'<image class="pixels" width="{canvas.shape[1]}" height="{height}" href="{_png(canvas, palette)}"/>'
    )
    return (
        f'<svg class="grid" viewBox="-0.2 -0.2 {full + 0.4} {height + 0.4}" role="img" font-size="{text * 0.73:.2f}" '
        f'style="max-width:{4.8 * columns}rem" '
        f'aria-label="{k} filters in the order of their standard deviation">{picture}{"".join(parts)}</svg>'
    )


def _png(canvas: NDArray[np.uint8], palette: int | None) -> str:
    from PIL import Image

    image = Image.fromarray(canvas, "RGBA")
    if (
        palette is None
        and (canvas[..., 0] == canvas[..., 1]).all()
        and (canvas[..., 1] == canvas[..., 2]).all()
    ):
        image = image.convert("LA")
    elif palette is not None:
        image = image.quantize(palette, method=Image.Quantize.FASTOCTREE)
    buffer = io.BytesIO()
    image.save(buffer, format="png", optimize=True)
    return data_uri(buffer.getvalue(), "image/png")


def weight_grid(
    W: Array, sigma: Array | None, most: int = MOST_WEIGHTS, names: Sequence[str] | None = None
) -> str:
    """Return one small plot per filter, all on one scale: bars with their names up to 16 features, else a line."""
    p, k = W.shape
    drawn = min(k, most)
    columns = min(drawn, 4)
    wide, high, head = 100, 56, 17
    limit = float(np.abs(W[:, :drawn]).max()) * 1.05 or 1.0
    parts = []
    for i in range(drawn):
        left, top = (i % columns) * (wide + 12), (i // columns) * (high + head + 6)
        name = str(i + 1) + ("" if sigma is None else f" · σ {format_sigma(float(sigma[i]))}")
        parts.append(f'<text class="tick" x="{left}" y="{top + 11}">{name}</text>')
        middle = top + head + high / 2
        parts.append(f'<path class="rule" d="M{left} {middle}h{wide}"/>')
        y = middle - W[:, i] / limit * high / 2
        parts += _bars(y, left, wide, middle, W[:, i], names) if p <= 16 else _weights(y, left, wide)
    full, tall = columns * (wide + 12) - 12, math.ceil(drawn / columns) * (high + head + 6)
    few = "" if drawn == k else f", the first {drawn} of {k}"
    return (
        f'<svg class="grid" viewBox="-1 0 {full + 2} {tall}" role="img" font-size="12" '
        f'style="max-width:{9 * columns}rem" '
        f'aria-label="weights of {drawn} filters over {p} features{few}">{"".join(parts)}</svg>'
    )


def _bars(
    y: Array, left: float, wide: float, middle: float, w: Array, names: Sequence[str] | None
) -> list[str]:
    step = wide / len(y)
    words = (
        [""] * len(y) if names is None else [f"{escape(n)} {v:+.3f}" for n, v in zip(names, w, strict=True)]
    )
    return [
        f'<rect class="bar" x="{left + (j + 0.12) * step:.1f}" y="{min(value, middle):.1f}" '
        f'width="{0.76 * step:.1f}" height="{abs(value - middle):.1f}"'
        + (f"><title>{words[j]}</title></rect>" if words[j] else "/>")
        for j, value in enumerate(y)
    ]


def _weights(y: Array, left: float, wide: float) -> list[str]:
    x = np.linspace(left, left + wide, len(y))
    if (
        len(y) > MOST_POINTS
    ):  # keep the weight farthest from the median of each stretch, so that no peak is lost
        middle = float(np.median(y))
        parts = np.array_split(np.arange(len(y)), MOST_POINTS)
        keep = [int(part[np.argmax(np.abs(y[part] - middle))]) for part in parts]
        x, y = x[keep], y[keep]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return [f'<polyline class="weights" points="{points}"/>']


BUDGET = 2_500_000  # bytes for all filter grids; a page of 20 runs may have 5 MB in all
MOST_NAMED = 16  # largest number of features whose names are listed
METRICS = {
    "MCC": "mcc",
    "explained variance": "explained_variance",
    "reconstruction error": "reconstruction_error",
    "orthogonality error": "orthogonality_error",
}


def gallery(report: Report) -> Gallery:
    """Return one panel per drawn run, and the sliders that choose it; one run has no sliders."""
    grids = _grids(report)
    axes, keys = axes_of(
        {n: [row[i] for i in report.drawn] for n, row in report.swept.items()}, len(report.drawn)
    )
    panels = []
    for i, key in zip(report.drawn, keys, strict=True):
        run = report.runs[i]
        many = len(report.runs) > 1
        heading = f"{i + 1}: {report.named(i)}" if many else _what_is_drawn(run)
        caption = f"{_what_is_drawn(run)}. {_metrics(run)}" if many else _metrics(run)
        picture: Any = Text(f"This run has no filters (status {run.status}).")
        if i in grids:
            picture = Picture(grids[i], "", caption, svg=True)
        panels.append(Panel(key, heading, [picture], i + 1))
    return Gallery(axes if len(panels) > 1 else [], panels)


def _grids(report: Report) -> dict[int, str]:
    """Return the filters of each run as SVG, in the largest size at which all of them fit into the budget."""
    having = [i for i in report.drawn if report.filters[i] is not None]

    def grid(i: int, most: int, palette: int | None) -> str:
        run, W = report.runs[i], report.filters[i]
        assert W is not None  # chosen above
        sigma = run.sigma if run.rotation is None else None
        return filter_grid(W, sigma, pixels_of(run), most, palette, run.names, run.grid)

    size = next((s for s in SIZES if having and len(grid(having[0], *s)) * len(having) <= BUDGET), SIZES[-1])
    return {i: grid(i, *size) for i in having}


def _what_is_drawn(run: StoredRun) -> str:
    k = 0 if run.filters is None else run.filters.shape[1]
    what = "filters" if run.rotation is None else "columns of the unmixing matrix"
    pixels = pixels_of(run)
    if pixels is None and len(run.grid.shape if run.grid else ()) == 2:
        return (
            f"{k} {what} as maps, each scaled by its largest weight: blue is negative, red positive, σ below"
        )
    if pixels is None:
        few = run.names is not None and len(run.names) <= MOST_NAMED
        bars = f"; bars from left to right: {', '.join(run.names)}" if run.names and few else ""
        return f"Weights of {k} {what}{bars}"
    below = ", σ below" if run.rotation is None else ""
    return f"{k} {what}, each scaled by its largest weight; zero is mid-grey{below}"


def _metrics(run: StoredRun) -> str:
    values = {
        "loss": last_loss(run),
        **{words: scalar(run, name) for words, name in METRICS.items()},
    }
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if not math.isnan(value))
