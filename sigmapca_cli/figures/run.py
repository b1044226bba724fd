"""The figures of one run, written to a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.n_components import DEFAULT, chance_eigenvalues
from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.figures.agreement import plot_certificate
from sigmapca_cli.figures.curves import plot_curves
from sigmapca_cli.figures.filters import pixels_of, plot_filters
from sigmapca_cli.figures.histograms import plot_histograms
from sigmapca_cli.figures.maps import is_drawn, plot_maps
from sigmapca_cli.figures.save import save
from sigmapca_cli.figures.scatter import plot_scatter
from sigmapca_cli.figures.scores import plot_scores
from sigmapca_cli.figures.signals import plot_signals
from sigmapca_cli.figures.spectrum import plot_scree, plot_spectrum
from sigmapca_cli.figures.style import Style
from sigmapca_cli.figures.titles import run_title
from sigmapca_cli.figures.topographies import electrodes, plot_topographies
from sigmapca_cli.figures.weights import plot_weights
from sigmapca_cli.solution.loadings import loadings_of, rotated
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN_ROWS = 20_000
"""Rows of histograms, scores and parallel analysis."""
MOST_PERMUTED = 1 << 24
"""Entries of rows whose columns are permuted for a scree."""
WIDE_ENOUGH = 3.2
"""Inches from which on two pairs of pattern and filter stand side by side."""
MOST_ARROWS_OF = 200
"""Features up to which a biplot is drawn unless it is asked for."""


def plot_run(
    run: Any,
    folder: str | Path,
    what: list[str] | None = None,
    source: Any = None,
    style: Style | None = None,
) -> list[Path]:
    """Write the figures named in `what` (default: all that suit the run) into `folder`; return the files.

    `run` has .filters .sigma .encoder .patch_shape .metrics .evaluation .attrs, like a `StoredRun`. `source` is its
    data; the figures of `WITH_DATA` need it. Raise InputError for an unknown name, and for a figure named in `what`
    that cannot be drawn from this run.
    """
    style = style or Style()
    if what is not None and (unknown := [name for name in what if name not in NAMES]):
        raise InputError(f"no figure named {unknown[0]!r}: choose from {', '.join(NAMES)}")
    written = []
    for name in what or NAMES:
        if what is None and not suits(name, run, source):
            continue
        figure = draw(name, run, source, style)
        if figure is not None:
            written += save(figure, Path(folder) / name, style.formats, style.dpi)
        elif what is not None:
            raise InputError(f"{name} cannot be drawn for the run {run_title(run)}: {why_not(name, source)}")
    return written


def draw(name: str, run: Any, source: Any, style: Style | None = None) -> Figure | None:
    """Return a figure by its name; None if the run, or a run without its data, has nothing to draw there."""
    style = style or Style()
    if name in FIGURES:
        return FIGURES[name](run, style)
    without = source is None or not getattr(source, "has_rows", True)
    return None if without else WITH_DATA[name](run, source, style)


def suits(name: str, run: Any, source: Any) -> bool:
    """Return whether a figure is drawn unless others are named: not what takes a minute, or shows no structure."""
    if name == "certificate":
        # On large data it takes a minute: only if `sigmapca evaluate --certificate` was run before.
        return any(str(key).startswith("identifiability") for key in run.evaluation or {})
    if name in ("scores", "biplot"):
        table = source is not None and pixels_of(source) is None and source.sample_rate is None
        return table and run.filters.shape[1] > 1 and (name == "scores" or source.p <= MOST_ARROWS_OF)
    if name == "loadings":
        return False  # filters of other lengths
    if name == "topographies":
        return bool(electrodes(getattr(run, "names", None)))
    # Patterns of orthogonal filters are these filters; a factor's hardly differ.
    return name != "patterns" or getattr(run, "rotation", None) is not None


def why_not(name: str, source: Any) -> str:
    """Return why a figure cannot be drawn."""
    if name in WITH_DATA and not getattr(source, "has_rows", False):
        return "it needs the rows of the run's data"
    if name == "topographies":
        return "it needs names of electrodes, such as Fp1 and Oz, and a package: pip install mne"
    return "the run has none"


def _filters(run: Any, style: Style) -> Figure:
    W, sigma = getattr(run, "directions", run.filters), getattr(run, "spreads", run.sigma)
    return _on_features(run, style, W, sigma)


def _on_features(
    run: Any, style: Style, W: Any, sigma: Any, labels: list[str] | None = None, columns: int | None = None
) -> Figure:
    """Draw directions (p, m) as the features of a run lie: on a map, as pixels, or by their names."""
    title, shape = style.title(run_title(run)), pixels_of(run)
    if shape is None and is_drawn(grid := getattr(run, "grid", None)):
        return plot_maps(W, sigma, grid, title, labels, columns or 4, style.width)
    names = getattr(run, "names", None)
    return plot_filters(W, sigma, shape, title, columns, labels, names, style.width, style.x_label)


def _patterns(run: Any, style: Style) -> Figure:
    """Draw the pattern b_i of each component (x ≈ Σ y_i b_i) beside the filter that computes it, each of length 1."""
    B, W = (
        directions / np.maximum(np.linalg.norm(directions, axis=0), 1e-300)
        for directions in (loadings_of(run).values, run.directions)
    )
    k = W.shape[1]
    pairs = np.stack([B, W], axis=2).reshape(len(W), 2 * k)
    labels = [f"{what} {i + 1}" for i in range(k) for what in ("pattern", "filter")]
    columns = 2 if style.width is not None and style.width < WIDE_ENOUGH else 4
    return _on_features(run, style, pairs, None, labels, columns)


def _loadings(run: Any, style: Style) -> Figure:
    found = loadings_of(run)
    if style.rotate is not None:
        found = rotated(found, style.rotate)
    shares = [None] * found.values.shape[1] if found.share is None else found.share.tolist()
    names = None if run.names is None else found.names
    return plot_weights(
        found.values,
        None,
        style.title(run_title(run)),
        labels=[
            f"{i}" + ("" if part is None else f"   {100 * part:.0f} %") for i, part in enumerate(shares, 1)
        ],
        names=names,
        width=style.width,
        x_label=style.x_label,
        called="loading",
    )


def _topographies(run: Any, style: Style) -> Figure | None:
    chosen = electrodes(run.names)
    if not chosen:
        return None
    names = [run.names[i] for i in chosen]
    return plot_topographies(loadings_of(run).values[chosen], names, style.title(run_title(run)), style.width)


def _curves(run: Any, style: Style) -> Figure | None:
    metrics = run.metrics
    if not metrics or all(name == "step" for name in metrics):
        return None
    return plot_curves(metrics, style.title(run_title(run)), width=style.width)


def _spectrum(run: Any, style: Style) -> Figure:
    evaluation = run.evaluation or {}
    return plot_spectrum(
        run.sigma, evaluation.get("pca_sigma"), style.title(run_title(run)), width=style.width
    )


def _scree(run: Any, source: Any, style: Style) -> Figure:
    axes = source.leading_axes(DEFAULT)
    values = axes.values[: axes.rank]
    chance = None
    if axes.whole and source.n * source.p < MOST_PERMUTED:
        chance = chance_eigenvalues(source.take(np.arange(source.n)).astype(np.float64))
    return plot_scree(values, chance, run.filters.shape[1], style.title(run_title(run)), style.width)


def _histograms(run: Any, source: Any, style: Style) -> Figure:
    x = source.take(evenly_spaced(source.n, DRAWN_ROWS)).astype(np.float64)
    return plot_histograms(x @ run.encoder, style.title(run_title(run)), width=style.width)


def _scores(run: Any, source: Any, style: Style, biplot: bool = False) -> Figure | None:
    k, chosen = run.encoder.shape[1], list(style.components)
    if k < 2:
        return None
    if max(chosen) >= k:
        raise InputError(f"--components: the run has {k}")
    if style.colour is None:
        Y, values = source.take(evenly_spaced(source.n, DRAWN_ROWS)).astype(np.float64) @ run.encoder, None
    else:
        from sigmapca_cli.figures.scores import components_beside

        Y, values = components_beside(run, style.colour)
    found = loadings_of(run)
    share = ["" if found.share is None else f" ({100 * found.share[i]:.1f} %)" for i in chosen]
    return plot_scores(
        Y[:, chosen],
        [f"component {i + 1}{part}" for i, part in zip(chosen, share, strict=True)],
        values,
        style.colour or "",
        found.values[:, chosen] if biplot else None,
        found.names,
        style.title(run_title(run)),
        style.width,
    )


def _signals(run: Any, source: Any, style: Style) -> Figure | None:
    if source.sample_rate is None and source.name != "signals":
        return None
    x = np.concatenate([rows.astype(np.float64) for rows in source.blocks()])
    truth = source.truth.sources if source.truth is not None else None
    title = style.title(run_title(run))
    return plot_signals(x, x @ run.encoder, truth, source.sample_rate, title, style.width)


def _scatter(run: Any, source: Any, style: Style) -> Figure | None:
    if source.p != 2:
        return None
    x = source.take(np.arange(source.n)).astype(np.float64)
    pca = source.principal_axes()[1]
    truth = None if source.truth is None else source.truth.filters
    if truth is None and source.truth is not None and source.truth.mixing is not None:
        truth = source.truth.mixing
    return plot_scatter(
        x,
        {"linear PCA": pca, run_title(run): getattr(run, "directions", run.filters)},
        truth,
        names=getattr(run, "names", None),
        width=style.width,
    )


def _certificate(run: Any, source: Any, style: Style) -> Figure:
    from sigmapca_cli.evaluation.certify import certify_run

    return plot_certificate(certify_run(run, source), style.title(run_title(run)), style.width)


FIGURES: dict[str, Callable[[Any, Style], Any]] = {
    "filters": _filters,
    "curves": _curves,
    "spectrum": _spectrum,
    "patterns": _patterns,
    "loadings": _loadings,
    "topographies": _topographies,
}
WITH_DATA: dict[str, Callable[[Any, Any, Style], Any]] = {
    "scree": _scree,
    "histograms": _histograms,
    "scores": _scores,
    "biplot": partial(_scores, biplot=True),
    "signals": _signals,
    "scatter": _scatter,
    "certificate": _certificate,
}
NAMES = (*FIGURES, *WITH_DATA)
