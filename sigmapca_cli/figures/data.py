"""Figures of a data set: a mosaic of patches, signals over time, points, or histograms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.figures.filters import PatchShape, as_rgb, pixels_of, plot_images
from sigmapca_cli.figures.histograms import plot_histograms
from sigmapca_cli.figures.save import save
from sigmapca_cli.figures.scatter import plot_points
from sigmapca_cli.figures.signals import plot_traces
from sigmapca_cli.figures.spectrum import plot_scree
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOSAIC = 96  # patches of a mosaic
MOST_ROWS = 50_000  # rows drawn


def plot_data(path: str | Path, stem: str | Path, **options: Any) -> list[Path]:
    """Draw a file or folder of any known format to stem.png and stem.pdf; `options` are fields of the data group."""
    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.data.describe.describe import lenient
    from sigmapca_cli.data.describe.recognise import options_for

    source, _ = lenient(DataConfig(path=str(path), **options_for(path, {"standardise": "none", **options})))
    return save(plot_source(source, Path(path).name), stem)


def plot_eigenvalues(facts: dict[str, Any], path: str | Path, stem: str | Path) -> list[Path]:
    """Draw the scree of facts that `describe` returned of a file, with its parallel analysis and the k proposed."""
    found, k = facts.get("components_then", facts["components"]), facts.get("k")
    chance = found.get("eigenvalues_by_chance")
    figure = plot_scree(found["eigenvalues"], chance, k if isinstance(k, int) else None, Path(path).name)
    return save(figure, stem)


def plot_source(source: Any, title: str = "") -> Figure:
    """Return a figure of a `data.source.Source`, in the units of its raw features unless it is whitened."""
    if source.n == 0:
        raise InputError(f"{title}: no rows to draw")
    if (shape := pixels_of(source)) is not None:
        return plot_images(as_rgb(_mosaic(source, shape)), f"{title}: {source.n} × {source.p}".lstrip(": "))
    x = raw(source, evenly_spaced(source.n, MOST_ROWS) if source.sample_rate is None else np.arange(source.n))
    if source.sample_rate is not None or source.name == "signals":
        return plot_traces(x, source.sample_rate, title)
    return (
        plot_points(x, title, source.names)
        if source.p == 2
        else plot_histograms(x, title, names=source.names)
    )


def raw(source: Any, index: np.ndarray) -> np.ndarray:
    """Return rows (b, p) before standardisation; rows of a whitened source stay whitened."""
    x = source.take(index).astype(np.float64)
    return x if source.whitening is not None else x * source.scale + source.mean


def _mosaic(source: Any, shape: PatchShape) -> np.ndarray:
    # A fixed random draw: a constant stride could take the same place of every image.
    index = np.sort(np.random.default_rng(0).choice(source.n, min(source.n, MOSAIC), replace=False))
    images = raw(source, index).reshape(len(index), *shape)
    low, high = images.min(), images.max()
    return (images - low) / (high - low if high > low else 1.0)
