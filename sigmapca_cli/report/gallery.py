"""The filters of all runs; sliders over the swept settings choose the run that is shown."""

from __future__ import annotations

import math
from typing import Any

from sigmapca_cli.figures.filters import pixels_of
from sigmapca_cli.report.gather import Report, axes_of, last_loss, scalar
from sigmapca_cli.report.grids import SIZES, filter_grid
from sigmapca_cli.report.page import Gallery, Panel, Picture, Text
from sigmapca_cli.storage.read import StoredRun

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
