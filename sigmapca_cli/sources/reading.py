"""New data for a run: read as its training data were, with columns by name and pixels on the same scale."""

import logging
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources import arrays, build
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.config import DataConfig, as_stored, kinds_of
from sigmapca_cli.sources.describe import kind_of_path
from sigmapca_cli.sources.patches import pixel_unit

# What says how a file is read, as opposed to which rows are taken and what is done to them.
TABLES = (
    "key", "dataset", "transpose", "header", "columns", "drop", "decimal", "delimiter", "encoding", "recognise",
)  # fmt: skip
PICTURES = ("patch", "stride", "padding", "grey", "max_pixels", "recognise")
FAR = 20.0


@dataclass
class NewData(DataConfig):
    """A data group with what its run expects of a table."""

    expected: Any = None  # names of the features, in the run's order
    least: int = 1  # rows
    fill: Any = None  # (p,) what stands in for missing values


def new_source(
    run: Any, path: str, changes: dict[str, Any] | None = None, *, aligned: bool = False
) -> Source:
    """The rows in a file or folder as the run's own data were read; `changes` are fields of the data group.

    Raw rows (`raw_blocks`) are in the units of the run's mean and scale. With `aligned` no row is left out: one with
    missing values is marked in `incomplete` (n,), as the run would have dropped it. Raises InputError where the file
    lacks a column of the run or has another number of features.
    """
    stored, changes = as_stored(run.config.get("data", {})), dict(changes or {})
    kind = changes.pop("name", None) or kind_of_path(path)
    of_pixels = run.patch_shape is not None
    options: dict[str, Any] = {"name": kind, "path": path, "standardise": "none"}
    if kind in kinds_of("pixels"):
        if not of_pixels:
            raise InputError(
                f"{path} holds pictures; this run was trained on {stored.get('name', 'other data')}"
            )
        options |= {name: stored[name] for name in PICTURES if name in stored}
        options["grey"] = run.patch_shape[2] == 1
    elif kind == "signals":
        options["mix"] = False
    elif kind == "array":
        options |= {name: stored[name] for name in TABLES if stored.get(name) is not None}
        return _table(run, stored, options, changes, aligned)
    return fitting(run, path, build(DataConfig(**{**options, **changes})))


def _table(
    run: Any, stored: dict[str, Any], options: dict[str, Any], changes: dict[str, Any], aligned: bool
) -> Source:
    names = (
        run.names if run.names and changes.get("columns") is None and not options.get("transpose") else None
    )
    if names is not None:
        options["columns"] = options["drop"] = None  # its names say it all, wherever the columns stand now
    missing = changes.get("missing", stored.get("missing", "refuse"))
    cfg = NewData(**{**options, **changes, "missing": missing}, expected=names)
    if missing == "ppca":
        cfg.missing = missing = "drop"  # the model of the training rows is not kept
    if missing == "mean" or (missing == "drop" and aligned):
        cfg.missing, cfg.fill = "mean", run.mean
    source = arrays.build(cfg)
    if missing == "mean":
        source.incomplete = None
    if run.patch_shape is not None:
        _as_pixels(run, source, str(cfg.path))
    return fitting(run, str(cfg.path), source)


def _as_pixels(run: Any, source: Any, path: str) -> None:
    """Integers are pixels, divided by the largest value of their type as those of the run were."""
    if source.pixels.kind in "ui":
        source.unit = pixel_unit(source.pixels)
    elif float(np.abs(source.mean).max()) > FAR * max(1.0, float(np.abs(run.mean).max())):
        logging.getLogger("sigmapca").warning(
            "%s: its values lie far outside the pixels of the run, 0 to 1: divide them by 255 first", path
        )


def fitting(run: Any, path: str, source: Source) -> Source:
    """The source, if it has the features of the run."""
    wide = len(run.filters)
    if source.p != wide:
        raise InputError(f"{path}: rows of {source.p} numbers, this run needs {wide}")
    return source


def known_fields() -> list[str]:
    """The fields of a data group."""
    return [field.name for field in fields(DataConfig)]
