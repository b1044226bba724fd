"""Charts of a report: loss and MCC over the steps, σ over the components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.figures.curves import LABELS
from sigmapca_cli.figures.scales import CLOSEST, HIGH, TICKS
from sigmapca_cli.figures.titles import UNIT
from sigmapca_cli.report.page import Picture, Pictures
from sigmapca_cli.report.svg import Series, colours, line_chart, thinned

if TYPE_CHECKING:
    from sigmapca_cli.report.gather import Report

MOST_NAMED = 12
ROUNDING = 1e-9
X_IS = "x: the rows, centred, and divided as data.standardise says."


def curves(report: Report) -> list[Any]:
    """Return one chart per logged metric, with one line per run."""
    palette = colours(len(report.drawn))
    pictures = []
    for name, words in LABELS.items():
        lines = []
        for i, colour in zip(report.drawn, palette, strict=True):
            metrics = report.runs[i].metrics
            if name in metrics:
                x, y = thinned(metrics["step"], metrics[name])
                if len(y):
                    lines.append(Series(x, y, colour, report.named(i), i + 1))
        if lines:
            chart = up_to_one(lines, "step", words) if name in ("mcc", "agreement") else None
            pictures.append(Picture(chart or line_chart(lines, "step", words), "", svg=True))
    return [Pictures(pictures, legend(report, palette))] if pictures else []


def up_to_one(
    lines: list[Series], x_label: str, y_label: str, rings: Series | None = None, log_x: bool = False
) -> str | None:
    """Return a chart of numbers from 0 to 1, whose axis separates 0.99 from 0.999 if one is above 0.9.

    None if a number is below 0 or above 1.
    """
    drawn = [line.y for line in [*lines, *([rings] if rings else [])]]
    low, high = min(y.min() for y in drawn), max(y.max() for y in drawn)
    if not 0 <= low <= high <= 1 + ROUNDING:
        return None
    if high <= HIGH:
        return line_chart(lines, x_label, y_label, (0.0, 1.02), rings=rings, log_x=log_x)
    top = next((tick for tick in TICKS if tick >= high), 1 - CLOSEST)
    return line_chart(lines, x_label, y_label, (0.0, top), rings=rings, near_one=True, log_x=log_x)


def spectra(report: Report) -> list[Any]:
    """Return a chart of σ of every run, with that of linear PCA as rings if the runs have the same data."""
    palette = colours(len(report.drawn))
    lines = []
    for i, colour in zip(report.drawn, palette, strict=True):
        sigma = report.runs[i].sigma
        if sigma is not None and len(sigma):
            lines.append(_over_components(sigma, colour, report.named(i), i + 1))
    if not lines:
        return []
    rings = _pca(report)
    values = np.concatenate([line.y for line in lines])
    log = bool(values.min() > 0 and values.max() > 10 * values.min()) and (rings is None or rings.y.min() > 0)
    chart = line_chart(lines, "component", f"σ ({UNIT})", log=log, rings=rings)
    caption = ("Rings: linear PCA. " if rings else "") + X_IS
    return [Pictures([Picture(chart, "", caption, svg=True)], legend(report, palette))]


def _over_components(sigma: np.ndarray, colour: str, words: str, run: int | None) -> Series:
    return Series(
        np.arange(1, len(sigma) + 1.0), np.asarray(sigma, dtype=float), colour, words, run, len(sigma) <= 40
    )


def _pca(report: Report) -> Series | None:
    stored = [report.runs[i].evaluation.get("pca_sigma") for i in report.drawn]
    having = [values for values in stored if values is not None]
    longest = max(having, key=len, default=None)
    if longest is None or not all(
        np.allclose(values, longest[: len(values)], rtol=1e-3) for values in having
    ):
        return None
    return _over_components(longest, "", "linear PCA", None)


def legend(report: Report, palette: list[str]) -> list[tuple[str, str]]:
    """Return (colour, run) pairs for a legend: of all runs, or of the first, the middle and the last of many runs."""
    if len(report.runs) == 1:
        return []
    count = len(report.drawn)
    chosen = range(count) if count <= MOST_NAMED else (0, count // 2, count - 1)
    return [(palette[j], report.named(report.drawn[j])) for j in chosen]
