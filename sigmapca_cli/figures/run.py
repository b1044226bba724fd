"""The figures of one run: which suit it, and where they go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.figures.curves import plot_curves
from sigmapca_cli.figures.filters import plot_filters
from sigmapca_cli.figures.save import save
from sigmapca_cli.figures.spectrum import plot_spectrum


def plot_run(run: Any, folder: str | Path, what: list[str] | None = None) -> list[Path]:
    """Write the figures named in `what` (all that suit the run unless given) into `folder`; returns the
    files.

    `run` has .filters .sigma .patch_shape .metrics .evaluation .attrs, as `runs.read.Run` does. InputError
    for a name that does not exist.
    """
    if what is not None and (unknown := [name for name in what if name not in FIGURES]):
        raise InputError(f"no figure named {unknown[0]!r}: choose from {', '.join(FIGURES)}")
    written = []
    for name in what or list(FIGURES):
        figure = FIGURES[name](run)
        if figure is not None:
            written += save(figure, Path(folder) / name)
        elif what is not None:
            raise InputError(f"the run {_title(run)} has nothing to draw {name} from")
    return written


def _filters(run: Any):
    shape = run.patch_shape
    return plot_filters(run.filters, run.sigma, None if shape is None else tuple(shape), _title(run))


def _curves(run: Any):
    metrics = run.metrics
    return plot_curves(metrics, _title(run)) if metrics and any(name != "step" for name in metrics) else None


def _spectrum(run: Any):
    evaluation = run.evaluation or {}
    return plot_spectrum(run.sigma, evaluation.get("pca_sigma"), _title(run))


def _title(run: Any) -> str:
    attrs = run.attrs
    seed = attrs.get("seed")
    return f"{attrs.get('model', 'run')}" + (f", seed {seed}" if seed is not None else "")


FIGURES: dict[str, Callable[[Any], Any]] = {"filters": _filters, "curves": _curves, "spectrum": _spectrum}
