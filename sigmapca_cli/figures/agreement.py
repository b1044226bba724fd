"""Figures of matrices: agreement between runs, rotation between two solutions, verdict on every pair of components."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.evaluation.agreement import MATCH_THRESHOLD
from sigmapca_cli.figures.save import BLACK, BLUE, GREY, heading, named, new_figure, scale_beside, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sigmapca_cli.evaluation.certificate import Certificate
    from sigmapca_cli.evaluation.stability import Stability

MOST_NUMBERS = 12
"""Largest number of runs whose agreement is also printed as numbers."""


def plot_agreement(matrix: ArrayLike, names: Sequence[str], chance: float | None = None) -> Figure:
    """Draw the mean matched |cos| of r runs, (r, r), on a colour scale from the chance level (0 unless given) to 1."""
    matrix = np.asarray(matrix, dtype=np.float64)
    r = len(matrix)
    size = min(0.45 * r + 2.4, 9.0)  # the names take up to 2 inches
    figure = new_figure(size + 0.8, size)
    axes = figure.add_subplot()
    low = chance or 0.0
    image = axes.imshow(matrix, cmap="cividis", vmin=low, vmax=1)
    if r <= MOST_NUMBERS:
        for i in range(r):
            for j in range(r):
                dark = matrix[i, j] < low + 0.6 * (1 - low)
                axes.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=7,
                          color="white" if dark else "black")  # fmt: skip
    axes.set_yticks(range(r), names, fontsize=7)
    axes.set_xticks(range(r), names, fontsize=7, rotation=90)
    scale_beside(axes, image, "matched |cos|" + (f"\nfrom chance {chance:.2f}" if chance else ""), 7)
    return figure


def plot_rotation(R: ArrayLike) -> Figure:
    """Draw R (k, l) of B = A R, positive red and negative blue; dots mark entries with |R_ij| > MATCH_THRESHOLD."""
    R = np.asarray(R, dtype=np.float64)
    figure = new_figure(min(0.16 * R.shape[1] + 2.0, 9), min(0.16 * R.shape[0] + 1.4, 9))
    axes = figure.add_subplot()
    image = axes.imshow(R, cmap="RdBu_r", vmin=-1, vmax=1)
    rows, columns = np.nonzero(np.abs(R) > MATCH_THRESHOLD)
    axes.plot(columns, rows, ".", color=BLACK, markersize=3)
    _component_axes(axes, *R.shape)
    named(axes, "component of B", "component of A")
    scale_beside(axes, image, f"R, dots: |R| > {MATCH_THRESHOLD:g}")
    return figure


def plot_certificate(certificate: Certificate, title: str = "", width: float | None = None) -> Figure:
    """Draw the score of every pair, curvature divided by its standard error: identified pairs blue, repelled red.

    Dots mark arbitrary pairs, whose score is below the threshold. Colours are clipped at ±10 thresholds.
    """
    from sigmapca_cli.evaluation.certificate import ARBITRARY, IDENTIFIED, REPELLED
    from sigmapca_cli.evaluation.words import NOT_CONVERGED, pairs_said

    k = len(certificate.sigma)
    bound = 10 * certificate.threshold
    side = min(0.16 * k + 1.6, 9)
    figure = new_figure(max(side + 1.2, 4.2), side + 0.7, width)
    axes = figure.add_subplot()
    axes.set_facecolor("white")
    masked = np.ma.masked_array(np.nan_to_num(certificate.score), np.eye(k, dtype=bool))
    image = axes.imshow(masked, cmap="RdBu", vmin=-bound, vmax=bound, interpolation="nearest")
    other = ~np.eye(k, dtype=bool)
    rows, columns = np.nonzero((certificate.verdict == ARBITRARY) & other)
    axes.plot(columns, rows, ".", color=BLACK, markersize=3)
    _component_axes(axes, k, k)
    named(axes, "component", "component")
    scale_beside(axes, image, "curvature / standard error", extend="both")
    repelled = int(((certificate.verdict == REPELLED) & other).sum()) // 2
    said = pairs_said(certificate.verdict != IDENTIFIED).lstrip(", ") or "all pairs are identified"
    words = f"{said}: {len(rows) // 2} arbitrary (dots), {repelled} repelled (red)"
    if certificate.converged is False:
        words = NOT_CONVERGED
    figure.supxlabel(textwrap.fill(words, max(int(figure.get_figwidth() * 16), 12)), fontsize=7)
    heading(figure, title)
    return figure


def plot_stability(found: Stability, title: str = "") -> Figure:
    """Draw the stability index of each cluster, the most stable first; clusters that are not reproducible are grey."""
    from matplotlib.patches import Patch

    from sigmapca_cli.evaluation.stability import RELIABLE_INDEX

    count = len(found.index)
    figure = new_figure(max(0.14 * count + 1.5, 3.4), 2.8)
    axes = figure.add_subplot()
    axes.bar(
        np.arange(1, count + 1), found.index, color=[BLUE if good else GREY for good in found.reproducible]
    )
    axes.axhline(RELIABLE_INDEX, color=BLACK, linewidth=0.8, linestyle="--")
    axes.set(ylim=(min(0.0, found.index.min()), 1.02))
    named(axes, "cluster", "stability index")
    tidy(axes)
    handles = [Patch(color=BLUE, label="reproducible"), Patch(color=GREY, label="not")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    heading(figure, title)
    return figure


def plot_similarity(filters: Sequence[ArrayLike], found: Stability, title: str = "") -> Figure:
    """Draw |cos| between all components of all runs, sorted by cluster: reproducible clusters are bright squares."""
    from sigmapca_cli.evaluation.matching import cosines

    pooled, labels = np.hstack([np.asarray(W) for W in filters]), np.concatenate(found.labels)
    order = np.argsort(labels, kind="stable")
    figure = new_figure(5.4, 4.6)
    axes = figure.add_subplot()
    image = axes.imshow(cosines(pooled[:, order], pooled[:, order]), cmap="cividis", vmin=0, vmax=1)
    edges = np.concatenate([[0], np.cumsum(np.bincount(labels))]) - 0.5
    middle = (edges[:-1] + edges[1:]) / 2
    labelled = slice(None, None, -(-len(middle) // 16))
    axes.set_xticks(middle[labelled], np.arange(1, len(middle) + 1)[labelled], fontsize=7)
    axes.set_yticks(middle[labelled], np.arange(1, len(middle) + 1)[labelled], fontsize=7)
    named(axes, "cluster", "cluster")
    scale_beside(axes, image, "|cos|")
    heading(figure, title)
    return figure


def _component_axes(axes: Axes, rows: int, columns: int) -> None:
    """Label both axes with component numbers, from 1, about eight labels per axis."""
    for count, set_ticks in ((columns, axes.set_xticks), (rows, axes.set_yticks)):
        step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 1 << 20) if count <= 9 * s)
        labelled = [0, *range(step - 1, count, step)] if step > 1 else list(range(count))
        set_ticks(labelled, [str(i + 1) for i in labelled], fontsize=7)
