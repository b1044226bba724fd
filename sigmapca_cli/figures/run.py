"""The figures of one run, written to a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.figures.agreement import plot_certificate
from sigmapca_cli.figures.curves import plot_curves
from sigmapca_cli.figures.filters import plot_filters
from sigmapca_cli.figures.histograms import plot_histograms
from sigmapca_cli.figures.save import save
from sigmapca_cli.figures.scatter import plot_scatter
from sigmapca_cli.figures.signals import plot_signals
from sigmapca_cli.figures.spectrum import plot_spectrum
from sigmapca_cli.figures.titles import run_title
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HISTOGRAM_ROWS = 20_000


def plot_run(run: Any, folder: str | Path, what: list[str] | None = None, source: Any = None) -> list[Path]:
    """Write the figures named in `what` (default: all that suit the run) into `folder`; return the files.

    `run` has .filters .sigma .encoder .patch_shape .metrics .evaluation .attrs, like a `StoredRun`. `source` is its
    data; the figures of `WITH_DATA` need it. Raise InputError for an unknown name, and for a figure named in `what`
    that cannot be drawn from this run.
    """
    if what is not None and (unknown := [name for name in what if name not in NAMES]):
        raise InputError(f"no figure named {unknown[0]!r}: choose from {', '.join(NAMES)}")
    written = []
    for name in what or NAMES:
        if what is None and name == "certificate" and not certified(run):
            continue  # takes a minute on large data: only if `sigmapca evaluate --certificate` was run before
        figure = draw(name, run, source)
        if figure is not None:
            written += save(figure, Path(folder) / name)
        elif what is not None:
            why = (
                "it needs the rows of the run's data"
                if name in WITH_DATA and not getattr(source, "has_rows", False)
                else "the run has none"
            )
            raise InputError(f"{name} cannot be drawn for the run {run_title(run)}: {why}")
    return written


def draw(name: str, run: Any, source: Any) -> Figure | None:
    """Return a figure by its name; None if the run, or a run without its data, has nothing to draw there."""
    if name in FIGURES:
        return FIGURES[name](run)
    without = source is None or not getattr(source, "has_rows", True)
    return None if without else WITH_DATA[name](run, source)


def certified(run: Any) -> bool:
    """Return whether `evaluate --certificate` has stored a certificate of this run."""
    return any(str(name).startswith("identifiability") for name in run.evaluation or {})


def _filters(run: Any) -> Figure:
    shape = run.patch_shape
    W, sigma = getattr(run, "directions", run.filters), getattr(run, "spreads", run.sigma)
    names = getattr(run, "names", None)
    return plot_filters(W, sigma, None if shape is None else tuple(shape), run_title(run), names=names)


def _curves(run: Any) -> Figure | None:
    metrics = run.metrics
    return (
        plot_curves(metrics, run_title(run)) if metrics and any(name != "step" for name in metrics) else None
    )


def _spectrum(run: Any) -> Figure:
    evaluation = run.evaluation or {}
    return plot_spectrum(run.sigma, evaluation.get("pca_sigma"), run_title(run))


def _histograms(run: Any, source: Any) -> Figure:
    x = source.take(evenly_spaced(source.n, HISTOGRAM_ROWS)).astype(np.float64)
    return plot_histograms(x @ run.encoder, run_title(run))


def _signals(run: Any, source: Any) -> Figure | None:
    if source.sample_rate is None and source.name != "signals":
        return None
    x = np.concatenate([rows.astype(np.float64) for rows in source.blocks()])
    truth = source.truth.sources if source.truth is not None else None
    return plot_signals(x, x @ run.encoder, truth, source.sample_rate, run_title(run))


def _scatter(run: Any, source: Any) -> Figure | None:
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
    )


def _certificate(run: Any, source: Any) -> Figure:
    from sigmapca_cli.evaluation.certify import certify_run

    return plot_certificate(certify_run(run, source), run_title(run))


FIGURES: dict[str, Callable[[Any], Any]] = {"filters": _filters, "curves": _curves, "spectrum": _spectrum}
WITH_DATA: dict[str, Callable[[Any, Any], Any]] = {
    "histograms": _histograms,
    "signals": _signals,
    "scatter": _scatter,
    "certificate": _certificate,
}
NAMES = (*FIGURES, *WITH_DATA)
