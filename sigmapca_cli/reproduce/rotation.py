"""W_L = W_N R: the rotation that turns nonlinear filters into linear ones, by gradient descent as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.evaluation.agreement import rotation_matches
from sigmapca_cli.figures.save import RED, new_figure
from sigmapca_cli.reproduce import draw
from sigmapca_cli.reproduce.results import Missing, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
TOP = 16
MOST_MATCHES = 7


def fit_rotation(linear: Array, nonlinear: Array, rate: float = 0.1, steps: int = 2000) -> Array:
    """R (k, k) minimising ‖W_L − W_N R‖² + ‖RᵀR − I‖², from the identity.

    The gradients are 2 W_Nᵀ(W_N R − W_L) and 4 R(RᵀR − I). The penalty is squared here, which keeps the minimum
    and has a gradient everywhere.
    """
    gram, cross = nonlinear.T @ nonlinear, nonlinear.T @ linear
    R = np.eye(gram.shape[0])
    for _ in range(steps):
        R = R - rate * (2 * (gram @ R - cross) + 4 * R @ (R.T @ R - np.eye(len(R)))) / 4
    return R


def fitted(results: Results) -> tuple[Array, Array, Array]:
    """Linear filters, nonlinear filters, and R."""
    linear, nonlinear = results.filters("pca"), results.filters("nonlinear")
    return linear, nonlinear, fit_rotation(linear, nonlinear)


def residual(results: Results) -> float:
    """‖W_L − W_N R‖ / ‖W_L‖."""
    linear, nonlinear, R = fitted(results)
    return float(np.linalg.norm(linear - nonlinear @ R) / np.linalg.norm(linear))


def rotation_error(results: Results) -> float:
    """‖RᵀR − I‖_F / √k."""
    R = fitted(results)[2]
    return float(np.linalg.norm(R.T @ R - np.eye(len(R))) / np.sqrt(len(R)))


def similar_sigma(results: Results) -> float:
    """Share of the matches of the first linear filters whose σ lies within a factor of 1.5 of theirs."""
    R = fitted(results)[2]
    one, other = results.run("pca").sigma, results.run("nonlinear").sigma
    assert one is not None and other is not None  # finished runs
    ratios = [other[i] / one[j] for j, rows in enumerate(rotation_matches(R)[:TOP]) for i, _ in rows]
    return float(np.mean(np.abs(np.log(ratios)) <= np.log(1.5)))


def draw_rotation(results: Results) -> Figure:
    """Both sets of filters, and each of the first linear ones beside what it is made of."""
    figure = new_figure(7.0, 7.6)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.05, 1])
    upper, lower = parts
    for i, panel in enumerate(results.panels):
        axes = upper.add_subplot(1, 2, i + 1)
        draw.filter_panel(axes, results, panel.key)
        draw.caption(axes, i, panel.caption, 50)
    try:
        linear, nonlinear, R = fitted(results)
        shape = results.run("pca").patch_shape
    except Missing as missing:
        draw.empty(lower.add_subplot(), str(missing))
        return figure
    assert shape is not None  # filters of image patches
    matches = rotation_matches(R)[:TOP]
    for half in range(2):
        axes = lower.add_subplot(1, 2, half + 1)
        rows = range(half * TOP // 2, (half + 1) * TOP // 2)
        width = 1 + MOST_MATCHES
        W = np.zeros((len(linear), width * len(rows)))
        for line, j in enumerate(rows):
            W[:, line * width] = linear[:, j]
            for place, (i, weight) in enumerate(matches[j][:MOST_MATCHES]):
                W[:, line * width + 1 + place] = np.sign(weight) * nonlinear[:, i]
        picture = draw.mosaic(W, shape, width)
        blank(picture, matches, rows, shape)
        axes.imshow(picture, interpolation="nearest")
        for line in range(len(rows)):
            frame(axes, line, shape)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        draw.caption(axes, 2 + half, f"linear filters {rows[0] + 1}–{rows[-1] + 1} and their parts", 50)
    return figure


def blank(picture: Array, matches: list[Any], rows: range, shape: tuple[int, int, int]) -> None:
    """White where a filter has fewer matches than there are places."""
    height, width = shape[0] + 1, shape[1] + 1
    for line, j in enumerate(rows):
        used = 1 + min(len(matches[j]), MOST_MATCHES)
        picture[line * height : (line + 1) * height, used * width - 1 :] = 1.0


def frame(axes, line: int, shape: tuple[int, int, int]) -> None:  # type: ignore[no-untyped-def]
    """A red frame round the linear filter at the left of a line."""
    from matplotlib.patches import Rectangle

    top = line * (shape[0] + 1) - 0.5
    axes.add_patch(Rectangle((-0.5, top), shape[1], shape[0], fill=False, edgecolor=RED, linewidth=1.2))
