"""New data for a run, read like its training data: the same columns by name, pixels on the same scale."""

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

# Settings of how a file is read, without those that select or change rows.
TABLES = (
    "key", "dataset", "transpose", "header", "columns", "drop", "decimal", "delimiter", "encoding", "recognise",
)  # fmt: skip
PICTURES = ("patch", "stride", "padding", "grey", "max_pixels", "recognise")
# Values whose mean is so many times larger than that of the run's pixels are on another scale.
FAR = 20.0


@dataclass
class NewData(DataConfig):
    """A data group, and what its run expects of a table."""

    expected: Any = None  # names of the features, in the run's order
    least: int = 1  # rows
    fill: Any = None  # (p,) values that replace missing ones


def new_source(
    run: Any, path: str, changes: dict[str, Any] | None = None, *, aligned: bool = False
) -> Source:
    """Return the rows in a file or folder, read like the run's own data; `changes`: fields of the data group.

    Raw rows (`raw_blocks`) are in the units of the run's mean and scale. `aligned`: no row is left out; a row with
    missing values, which the run would have dropped, is marked in `incomplete` (n,). Raise InputError if the file
    lacks a column of the run or has another number of features.
    """
    stored, changes = as_stored(run.config.get("data", {})), dict(changes or {})
    kind = changes.pop("name", None) or kind_of_path(path)
    of_pixels = run.patch_shape is not None
    options: dict[str, Any] = {"name": kind, "path": path, "standardise": "none"}
    if kind in kinds_of("pixels"):
        if not of_pixels:
            raise InputError(
                f"{path} holds pictures, but this run was trained on {stored.get('name', 'other data')}"
            )
        options |= {name: stored[name] for name in PICTURES if name in stored}
        options["grey"] = run.patch_shape[2] == 1
    elif kind == "signals":
        options["mix"] = False
    elif kind == "array":
        options |= {name: stored[name] for name in TABLES if stored.get(name) is not None}
        return _table(run, stored, options, changes, aligned)
    return checked_width(run, path, build(DataConfig(**{**options, **changes})))


def _table(
    run: Any, stored: dict[str, Any], options: dict[str, Any], changes: dict[str, Any], aligned: bool
) -> Source:
    names = (
        run.names if run.names and changes.get("columns") is None and not options.get("transpose") else None
    )
    if names is not None:
        options["columns"] = options["drop"] = (
            None  # the names select the columns, in whatever order they are
        )
    missing = changes.get("missing", stored.get("missing", "refuse"))
    cfg = NewData(**{**options, **changes, "missing": missing}, expected=names)
    if missing == "ppca":
        cfg.missing = missing = "drop"  # the PPCA model of the training rows is not stored
    if missing == "mean" or (missing == "drop" and aligned):
        cfg.missing, cfg.fill = "mean", run.mean
    source = arrays.build(cfg)
    if missing == "mean":
        source.incomplete = None
    if run.patch_shape is not None:
        _as_pixels(run, source, str(cfg.path))
    return checked_width(run, str(cfg.path), source)


def _as_pixels(run: Any, source: Any, path: str) -> None:
    """Treat integers as pixels, divided by the largest value of their type, like those of the run."""
    if source.pixels.kind in "ui":
        source.unit = pixel_unit(source.pixels)
    elif float(np.abs(source.mean).max()) > FAR * max(1.0, float(np.abs(run.mean).max())):
        logging.getLogger("sigmapca").warning(
            "%s: its values are far outside 0 to 1, the range of the pixels of the run: divide them by 255 first",
            path,
        )


def checked_width(run: Any, path: str, source: Source) -> Source:
    """Return the source; raise InputError if it has another number of features than the run."""
    width = len(run.filters)
    if source.p != width:
        raise InputError(f"{path}: rows have {source.p} numbers, this run needs {width}")
    return source


def known_fields() -> list[str]:
    """Return the names of the fields of a data group."""
    return [field.name for field in fields(DataConfig)]
