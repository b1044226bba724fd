"""Charts of a report as SVG, in the light or dark colours of the page: loss and MCC over the steps, σ, agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigmapca_cli.figures.curves import LABELS
from sigmapca_cli.figures.scales import CLOSEST, HIGH, TICKS, nines
from sigmapca_cli.figures.titles import UNIT
from sigmapca_cli.report.page import Picture, Pictures

if TYPE_CHECKING:
    from sigmapca_cli.report.gather import Report

Array = NDArray[np.float64]

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 10, 12, 38
MOST_POINTS = 150


@dataclass(frozen=True)
class Series:
    """One line: x, y (n,), CSS colour, words, and number of its run."""

    x: Array
    y: Array
    colour: str
    words: str = ""
    run: int | None = None
    dots: bool = False


def escape(text: Any) -> str:
    """Return text escaped for SVG or HTML."""
    from markupsafe import escape as escaped

    return str(escaped(str(text)))


def colours(n: int) -> list[str]:
    """Return n colours from blue to vermilion: distinct for colour-blind readers, visible on white and on black."""
    stops = np.array([[0, 114, 178], [150, 95, 175], [213, 94, 0]], dtype=float)
    at = np.linspace(0, 2, n) if n > 1 else np.zeros(n)
    rgb = np.stack([np.interp(at, [0, 1, 2], stops[:, c]) for c in range(3)], axis=1)
    return ["#" + "".join(f"{round(v):02x}" for v in row) for row in rgb]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most about `most` round numbers within [low, high]; their step is 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten within [low, high]; if there are fewer than two, also 2 and 5 times them."""
    powers = [10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [v for v in powers if low <= v <= high]
    if len(inside) >= 2:
        return inside[:: math.ceil(len(inside) / 6)]
    return [v for p in powers for v in (p, 2 * p, 5 * p) if low <= v <= high]


def label(value: float) -> str:
    """Return the number of a tick as text: 2,000, 0.05, 1e-06."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.6g}"


def limits(series: Sequence[Series], log: bool) -> tuple[float, float]:
    """Return the range of y. Of more than 40 points, 0.5 % at either end may be outside."""
    lows, highs = [], []
    for line in series:
        many = len(line.y) > 40
        lows.append(min(np.percentile(line.y, 0.5) if many else line.y.min(), line.y[-1]))
        highs.append(np.percentile(line.y, 99.5) if many else line.y.max())
    low, high = float(min(lows)), float(max(highs))
    if log:
        return low / 1.2, high * 1.2
    pad = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - pad, high + pad


def line_chart(
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    y_limits: tuple[float, float] | None = None,
    log: bool = False,
    rings: Series | None = None,
    near_one: bool = False,
    log_x: bool = False,
) -> str:
    """Return SVG of lines over one pair of axes; `rings` are open circles; `log` and `log_x` need positive numbers.

    `near_one`: y up to 1, with the same distance from 0.9 to 0.99 as from 0.99 to 0.999.
    """
    drawn = [*series, *([rings] if rings else [])]
    low, high = y_limits or limits(drawn, log)
    scale = nines if near_one else np.log if log else np.asarray
    left, right = (float(f([f(line.x) for line in drawn])) for f in (np.min, np.max))
    if right == left:
        left, right = (left / 1.5, right * 1.5) if log_x else (left - 0.5, right + 0.5)
    down, up = float(scale(low)), float(scale(high))
    along = np.log if log_x else np.asarray
    begin, end = float(along(left)), float(along(right))

    def at_x(x: ArrayLike) -> Array:
        return LEFT + (along(np.asarray(x, dtype=float)) - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    def at_y(y: ArrayLike) -> Array:
        height = (scale(np.asarray(y, dtype=float)) - down) / (up - down)
        return HEIGHT - BOTTOM - np.clip(height, -0.02, 1.02) * (HEIGHT - TOP - BOTTOM)

    x_ticks = decades(left, right) if log_x else ticks(left, right)
    y_ticks = decades(low, high) if log else ticks(low, high)
    y_ticks = [tick for tick in TICKS if low <= tick <= high] if near_one else y_ticks
    parts = _axes(x_ticks, y_ticks, at_x, at_y)
    parts += [
        f'<text class="label" x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">'
        f"{escape(x_label)}</text>",
        f'<text class="label" transform="translate(11 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>',
    ]
    for line in series:
        parts += _line(line, at_x(line.x), at_y(line.y))
    if rings:
        parts += [
            f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
            for x, y in zip(at_x(rings.x), at_y(rings.y), strict=True)
        ]
    chosen = sum(line.run is not None for line in series) > 1  # the page marks the line of the run chosen
    words = f"{y_label} over {x_label}" + (f", {len(series)} lines" if len(series) > 1 else "")
    return (
        f'<svg class="chart{" many" if chosen else ""}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(words)}" font-size="12">{"".join(parts)}</svg>'
    )


def _axes(x_ticks: list[float], y_ticks: list[float], at_x: Any, at_y: Any) -> list[str]:
    floor, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in y_ticks:
        y = float(at_y(value))
        parts.append(f'<path class="rule" d="M{LEFT} {y:.1f}H{end}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label(value)}</text>'
        )
    for value in x_ticks:
        x = float(at_x(value))
        parts.append(f'<path class="axis" d="M{x:.1f} {floor}v4"/>')
        anchor = "end" if x > end - 8 else "middle"
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{floor + 17}" text-anchor="{anchor}">{label(value)}</text>'
        )
    return [*parts, f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{end}"/>']


def _line(line: Series, x: Array, y: Array) -> list[str]:
    run = "" if line.run is None else f' data-run="{line.run}"'
    title = f"<title>{escape(line.words)}</title>" if line.words else ""
    parts = []
    if len(x) > 1:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(
            f'<polyline class="series" stroke="{line.colour}"{run} points="{points}">{title}</polyline>'
        )
    if line.dots or len(x) == 1:
        parts += [
            f'<circle class="dot" fill="{line.colour}"{run} cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>'
            for a, b in zip(x, y, strict=True)
        ]
    return parts


def thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the finite points, at most `MOST_POINTS`, with the last one; of more than 200 points the running mean."""
    from sigmapca_cli.data.subsample import evenly_spaced
    from sigmapca_cli.figures.curves import running_mean

    good = np.isfinite(x) & np.isfinite(y)
    x, y = np.asarray(x, dtype=float)[good], np.asarray(y, dtype=float)[good]
    if len(y) > 200:
        window = len(y) // 50
        y = running_mean(y, window)
        x = x[window // 2 : window // 2 + len(y)]
    keep = evenly_spaced(len(x), MOST_POINTS)
    return x[keep], y[keep]


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
