"""Arrays of more than two dimensions as matrices: data.rows names the dimension that counts the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.storage.grid import Grid
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import need_memory
from sigmapca_cli.system.untrusted_hdf5 import as_text


class ManyDimensions(InputError):
    """Error for an array of this shape, three or more dimensions, none of which is named as that of the rows."""

    def __init__(self, shape: Sequence[int], message: str) -> None:
        super().__init__(message)
        self.shape = tuple(shape)


def as_matrix(
    data: Any,
    cfg: DataConfig,
    where: object,
    dimensions: Sequence[str] | None = None,
    labels: Sequence[Sequence[str] | None] = (),
    coordinates: Sequence[NDArray[np.float64] | None] = (),
) -> Table:
    """Return an array of three or more dimensions as a matrix, one row for each place along data.rows.

    dimensions: their names, if the file has some; else they are numbered from 0. labels: values along each, in words;
    coordinates: in numbers.
    The other dimensions become the features, the last one fastest, named as in "lat=45 lon=3.5" where all have values.
    Features without any number, such as cells on land, are left out. Raise InputError where data.rows names none.
    """
    axes = axes_of(cfg.rows, data.shape, dimensions, where)
    need_memory(2.0 * data.size * data.dtype.itemsize, where, "save a part of it")
    rest = [i for i in range(len(data.shape)) if i not in axes]
    count = math.prod(data.shape[i] for i in axes)
    matrix = np.transpose(np.asarray(data[...]), [*axes, *rest]).reshape(count, -1)
    called = [f"{dimensions[i]}=" if dimensions else "" for i in rest]
    values = [labels[i] if i < len(labels) else None for i in rest]
    names = None
    if all(value is not None for value in values):
        each = ([c + v for v in value or ()] for c, value in zip(called, values, strict=True))
        names = [" ".join(parts) for parts in itertools.product(*each)]
    grid = Grid(
        tuple(data.shape[i] for i in rest),
        np.arange(matrix.shape[1]),
        tuple(dimensions[i] for i in rest) if dimensions else (),
        tuple(coordinates[i] if i < len(coordinates) else None for i in rest),
    )
    table = Table(matrix, names, grid=grid)
    rows = labels[axes[0]] if len(axes) == 1 and axes[0] < len(labels) else None
    table.labels = None if rows is None else list(rows)
    return without_empty(table, where)


def labels_of(values: NDArray[Any], width: int) -> list[str] | None:
    """Return the values along a dimension as names; None if they only number it or do not have one for each place."""
    if values.shape != (width,) or (values.dtype.kind in "iu" and np.array_equal(values, np.arange(width))):
        return None
    if values.dtype.kind in "iuf":
        short = [f"{value:g}" for value in values.tolist()]
        return short if len(set(short)) == width else [str(value) for value in values.tolist()]
    if values.dtype.kind == "M":
        return [str(value) for value in np.datetime_as_string(values, unit="auto").tolist()]
    return [as_text(value) for value in values.tolist()] if values.dtype.kind in "SOUT" else None


def without_empty(table: Table, where: object) -> Table:
    """Return the table without the features that have no number at all, with a note that counts them."""
    if table.data.dtype.kind != "f":
        return table
    present = ~np.isnan(table.data).all(axis=0)
    if present.all() or not present.any():
        return table
    kept = np.flatnonzero(present)
    if table.names is None:
        table.names = [str(i) for i in range(table.data.shape[1])]  # the place of each in the array is kept
    table.notes.append(
        f"{where}: {len(present) - len(kept)} of {len(present)} features have no value in any row: left out"
    )
    table.names = [table.names[i] for i in kept]
    table.data = table.data[:, kept]
    table.grid = None if table.grid is None else table.grid.of(kept)
    return table


def axes_of(rows: Any, shape: Sequence[int], dimensions: Sequence[str] | None, where: object) -> list[int]:
    """Return the numbers of the dimensions that count the rows. Raise InputError with the shape where none is named."""
    known = [str(i) for i in range(len(shape))]
    names = list(dimensions or known)
    asked = [] if rows is None else [str(one) for one in (rows if isinstance(rows, list | tuple) else [rows])]
    unknown = [one for one in asked if one not in names and one not in known]
    found = [names.index(one) if one in names else known.index(one) for one in asked if one not in unknown]
    if found and not unknown and len(set(found)) == len(found) < len(shape):
        return found
    sizes = zip(names, shape, strict=True)
    shown = " × ".join(f"{name} ({size})" if dimensions else str(size) for name, size in sizes)
    what = f"has {len(shape)} dimensions, {shown}" + ("" if dimensions else ", counted from 0")
    wrong = f"no dimension {unknown[0]!r}: it " if unknown else ""
    raise ManyDimensions(
        shape,
        f"{where}: {wrong}{what}: name the one that counts the rows, as in data.rows={names[0]}; "
        "the others become the features",
    )
