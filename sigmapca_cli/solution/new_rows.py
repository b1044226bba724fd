"""New rows for a stored solution, read like its training data: columns by name, pixels on one scale, names of rows."""

from __future__ import annotations

import contextlib
import logging
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig, as_stored, kinds_of, name_list
from sigmapca_cli.data.describe.recognise import kind_of_path
from sigmapca_cli.data.in_memory import MemorySource, PlacedSource
from sigmapca_cli.data.matrix import arrays
from sigmapca_cli.data.matrix.concatenated import files_of
from sigmapca_cli.data.matrix.in_rows import plain_form
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.readers.dimensions import labels_of
from sigmapca_cli.data.readers.row_marks import column
from sigmapca_cli.data.readers.sparse_files import is_sparse
from sigmapca_cli.data.readers.table import in_order
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.solution.solution import Solution, told_incomplete
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import shared

# Settings of how a file is read, without those that select or change rows.
TABLES = (
    "key", "dataset", "transpose", "rows", "header", "columns", "drop", "decimal", "delimiter", "encoding",
    "missing_codes", "recognise",
)  # fmt: skip
PICTURES = ("patch", "stride", "padding", "grey", "max_pixels", "recognise")


@dataclass
class NewData(DataConfig):
    """A data group, and what its run expects of a table."""

    expected: Any = None  # names of the features, in the run's order
    least: int = 1  # rows
    fill: Any = None  # (p,) values that replace missing ones
    flat: bool = False  # the features may stand side by side already, where data.rows is the run's


def new_source(
    run: Any, path: str, changes: dict[str, Any] | None = None, *, aligned: bool = False
) -> Source:
    """Return the rows in a file or folder, read like the run's own data; `changes`: fields of the data group.

    Rows of `blocks(raw=True)` are in the units of the run's mean and scale. `aligned`: no row is left out; a row with
    missing values, which has no components, is marked in `incomplete` (n,). Raise InputError if the file lacks a column
    of the run or has another number of features.
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
        return _table(run, options, changes, aligned)
    return _of_width(len(run.filters), path, build(DataConfig(**{**options, **changes})))


def _table(run: Any, options: dict[str, Any], changes: dict[str, Any], aligned: bool) -> Source:
    solution = Solution.of(run)
    by_name = solution.names and changes.get("columns") is None and not options.get("transpose")
    if by_name:
        options["columns"] = options["drop"] = (
            None  # the names select the columns, in whatever order they are
        )
    missing = changes.get("missing", solution.missing)
    names = solution.names if by_name else None
    cfg = NewData(**{**options, **changes, "missing": missing}, expected=names)
    cfg.flat = "rows" not in changes
    if missing == "ppca":
        cfg.missing = missing = "drop"  # the PPCA model of the training rows is not stored
    if missing == "mean" or (missing == "drop" and aligned):
        cfg.missing, cfg.fill = "mean", run.mean
    source = arrays.build(cfg)
    if missing == "mean":
        source.incomplete = None
    if solution.pixels and isinstance(source, arrays.ArraySource):
        source.unit = solution.unit(source.pixels)
        solution.check_scale(source.mean * source.unit, str(cfg.path))
    return _of_width(len(run.filters), str(cfg.path), source)


def _of_width(width: int, path: str, source: Source) -> Source:
    """Return the source; raise InputError if it has another number of features than the run."""
    if source.p != width:
        raise InputError(f"{path}: rows have {source.p} numbers, this run needs {width}")
    return source


def matrix_of(X: Any, width: int, names: list[str] | None = None, what: str = "features") -> Any:
    """Return rows in memory as an array (n, width) of numbers in their own type, or as compressed rows.

    Columns of a table are taken by `names`, where there are some; a masked value is nan. what: what the columns are,
    for an error. Raise InputError if X is no matrix of numbers of this width, or lacks a column.
    """
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"{X}: the name of a file, where rows are needed; sigmapca transform RUN FILE OUT reads it"
        )
    X = plain_form(X, what)
    if names and hasattr(X, "columns") and hasattr(X, "to_numpy"):
        order = in_order([str(column) for column in X.columns], names, "the table")
        X = (X.iloc[:, order] if hasattr(X, "iloc") else X[:, order]).to_numpy()
    elif names and hasattr(X, "coords") and X.ndim == 2 and X.dims[1] in X.coords:
        labels = labels_of(np.asarray(X[X.dims[1]].values), X.shape[1])
        X = X.values if labels is None else X.values[:, in_order(labels, names, "the array")]
    if is_sparse(X) or hasattr(X, "tocsr"):
        rows: Any = X.tocsr()
    else:
        try:
            rows = np.asarray(X)
            rows = rows if rows.dtype.kind in "biuf" else np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{what}: no matrix of numbers") from None
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(f"expected {what} of shape (n, {width}), got {rows.shape}")
    return rows


def cells_of(X: Any, run: Any) -> Any:
    """Return maps in memory as rows (n, p) of the features of a run on maps; what has two dimensions as it is.

    Dimensions of xarray go by their names. Those of other arrays have the order of the training data.
    Raise InputError for maps of other cells.
    """
    if run.grid is None or getattr(X, "ndim", 2) <= 2:
        return X
    shape, names = run.grid.shape, run.grid.names
    if hasattr(X, "dims"):
        if not set(names) <= {str(dim) for dim in X.dims}:
            raise InputError(f"expected the dimensions {', '.join(names)}, got {', '.join(map(str, X.dims))}")
        X = np.asarray(X.transpose(..., *names).values)
    else:
        X = np.asarray(plain_form(X, "features"))
        asked: Any = as_stored(run.config["data"]).get("rows")
        rows = [int(one) for one in (asked if isinstance(asked, list) else [asked]) if str(one).isdecimal()]
        X = np.moveaxis(X, rows, range(len(rows))) if max(rows, default=0) < X.ndim else X
    if X.shape[-len(shape) :] != shape:
        raise InputError(f"expected maps of {run.grid.words}, got an array of shape {X.shape}")
    return X.reshape(-1, math.prod(shape))[:, run.grid.place]


def transformed(solution: Solution, X: Any) -> np.ndarray:
    """Return the components (n, k) of rows in memory, as `new_source` and `Solution.stream` give those of a file."""
    rows = matrix_of(X, len(solution.mean), solution.names)
    if solution.pixels and not is_sparse(rows) and len(rows):
        solution.check_scale(rows.mean(axis=0) * solution.unit(rows.dtype), "features")
    Y = solution.apply(rows)
    if incomplete := int(np.isnan(Y[:, :1]).sum()):
        logging.getLogger("sigmapca").warning("%s", told_incomplete(incomplete))
    return Y


def placed(run: Any, source: Source, *, centred: bool = False) -> Any:
    """Return other data standardised as the run's were: with its mean, or centred on themselves.

    Centred on themselves, rows that have moved away from the training data would cost no reconstruction.
    """
    solution = Solution.of(run)
    factors = solution.whitening if isinstance(solution.whitening, LowRank) else None
    unlike = solution.clip is not None or (solution.whitening is not None and factors is None)
    if not unlike and (source.p > WIDE or is_sparse(getattr(source, "X", None))):
        return source.placed(source.mean if centred else solution.mean, solution.scale, factors)
    with shared(None):  # every rank holds all of these rows
        x = np.concatenate([solution.standardised(raw) for raw in source.blocks(raw=True)])
    kind = MemorySource if centred else PlacedSource
    return kind(source.name, x, Standardisation(standardise="none"))


MOST_DROPPED = 20
"""More columns that were left out are no names of rows."""


def row_names(run: Any, path: str, n: int) -> dict[str, list[str]]:
    """Return the columns of a table (n rows) that the run left out by name, as text; those that the file has."""
    cfg = data_of(run)
    dropped = [name for name in name_list("drop", cfg.drop) or [] if isinstance(name, str)]
    if not run.names or cfg.transpose or len(dropped) > MOST_DROPPED or kind_of_path(path) != "array":
        return {}
    read, found = replace(cfg, name="array", path=path, columns=None), {}
    for name in dropped:
        with contextlib.suppress(InputError):
            values = [str(value) for file in files_of(path) for value in column(file, read, name)]
            if len(values) == n:
                found[name] = values
    return found
