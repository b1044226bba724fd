"""Copies of arrays of xarray, with names and coordinates of their dimensions, as HDF5 that the reader knows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.api.arrays import FOLDER, folder_of
from sigmapca_cli.data.matrix.in_rows import check_matrix, check_numbers
from sigmapca_cli.data.readers.hdf5 import NO_VARIABLE
from sigmapca_cli.data.readers.labelled import variable_of
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.atomic import replacing


def kept(data: Any, wanted: str | None, outputs: str | None) -> Path:
    """Return the copy of an array of xarray, or of one of a data set: <outputs>/arrays/<hash of the values>.h5.

    wanted: the variable of a data set; else as in a file. Raise InputError for what holds no numbers.
    """
    array = variable_of(data, "data", wanted) if hasattr(data, "data_vars") else data
    values = np.ascontiguousarray(array.values)
    if values.ndim > 2:
        check_numbers(values.dtype, "data")
    else:
        check_matrix(values, "data")
    along = {str(dim): coordinates(array, dim) for dim in array.dims}
    name = "data" if array.name is None or str(array.name) in along else str(array.name)
    digest = hashlib.sha256(repr((name, values.dtype.str, values.shape, list(along))).encode())
    for held in (values, *(found for found in along.values() if found is not None)):
        digest.update(held.tobytes())
    path = outputs_root(outputs) / FOLDER / f"{digest.hexdigest()[:20]}.h5"
    if not path.exists():
        folder_of(path)
        with replacing(path) as aside:
            write(aside, name, values, along, str(array.attrs.get("units", "")))
    return path


def coordinates(array: Any, dim: Any) -> np.ndarray | None:
    """Return the values along a dimension, numbers or texts in UTF-8; None if it has none."""
    if dim not in array.coords:
        return None
    found = np.asarray(array[dim].values)
    if found.dtype.kind == "M":
        found = np.datetime_as_string(found, unit="auto")
    if found.dtype.kind in "biuf":
        return found
    return np.char.encode([str(value) for value in found.tolist()], "utf-8")  # of several levels: tuples


def write(path: Path, name: str, values: np.ndarray, along: dict[str, np.ndarray | None], units: str) -> None:
    """Write an array and the scales of its dimensions."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset(name, data=values)
        if units:
            data.attrs["units"] = units
        for axis, (dim, held) in enumerate(along.items()):
            scale = file.create_dataset(
                dim, data=np.zeros(values.shape[axis], "i1") if held is None else held
            )
            scale.make_scale(NO_VARIABLE if held is None else dim)
            data.dims[axis].attach_scale(scale)
