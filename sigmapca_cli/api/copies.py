"""Copies of rows in memory, written once beside the runs: a run can then be evaluated, resumed and made again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.matrix.in_rows import check_matrix, check_numbers
from sigmapca_cli.data.readers.hdf5 import NO_VARIABLE
from sigmapca_cli.data.readers.labelled import variable_of
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError

FOLDER = "arrays"


def place_of(rows: Any, outputs: str | None) -> Path:
    """Return where the copy of rows lies: <outputs>/arrays/<hash of the values>.npy, or .npz if they are sparse.

    The same values have the same file. rows: as `data.matrix.held.as_rows` returns them.
    """
    dense = isinstance(rows, np.ndarray)
    kind = (rows.dtype.descr, rows.shape) if dense else (rows.shape, rows.dtype.str)
    digest = hashlib.sha256(repr(kind).encode())
    for part in (rows,) if dense else (rows.indptr, rows.indices, rows.data):
        digest.update(np.ascontiguousarray(part).view(np.uint8).reshape(-1).data)
    return outputs_root(outputs) / FOLDER / f"{digest.hexdigest()[:20]}{'.npy' if dense else '.npz'}"


def keep(rows: Any, path: Path) -> None:
    """Write the copy of rows, unless it is there. Raise InputError if its folder cannot be made."""
    if path.exists():
        return
    folder_of(path)
    with replacing(path) as aside, open(aside, "wb") as file:
        if isinstance(rows, np.ndarray):
            np.save(file, rows, allow_pickle=False)
        else:
            from scipy import sparse

            sparse.save_npz(file, rows, compressed=False)


def folder_of(path: Path) -> None:
    """Make the folder of a copy. Raise InputError if it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{path.parent}: cannot be created ({problem.strerror}); give outputs=") from None


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
