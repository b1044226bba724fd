"""Arrays of xarray, whose dimensions have names and coordinates, as matrices: of memory, Zarr stores and netCDF 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.dimensions import as_matrix, labels_of
from sigmapca_cli.data.readers.hdf5 import DESCRIBING, pick
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged


class Lazy:
    """Values of a variable of xarray, read as they are asked for, with the attributes of an h5py data set."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self.shape, self.ndim, self.dtype = variable.shape, variable.ndim, variable.dtype
        self.size = variable.size

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return np.asarray(self._variable[index].values)


def variable_of(data: Any, where: Any, wanted: str | None) -> Any:
    """Return the array of a data set of xarray to read: the one named, else the only matrix, else of more dimensions.

    Vectors of one dimension are the columns of a table, an array with the dimension `column`. Raise InputError where
    there is a choice.
    """
    said = [
        held.get(key, "")
        for a in data.variables.values()
        for held in (a.attrs, a.encoding)
        for key in DESCRIBING
    ]
    beside = {word for text in said for word in str(text).split()}
    numeric = [str(n) for n, a in data.data_vars.items() if a.dtype.kind in "biufc" and str(n) not in beside]
    if wanted is not None:
        return data[pick(where, [str(name) for name in data.variables], wanted, "dataset")]
    matrices = [name for name in numeric if data[name].ndim == 2]
    vectors = [name for name in numeric if data[name].ndim == 1]
    if not matrices and len(vectors) > 1 and len({data[name].dims for name in vectors}) == 1:
        return data[vectors].to_dataarray("column").transpose(..., "column")
    return data[pick(where, matrices or [n for n in numeric if data[n].ndim > 2] or vectors, None, "dataset")]


def table_of(array: Any, cfg: DataConfig, where: object) -> Table:
    """Return an array of xarray as a table: names of columns and rows are the coordinates of its dimensions."""
    dims = [str(dim) for dim in array.dims]
    along = [np.asarray(array[dim].values) if dim in array.coords else None for dim in array.dims]
    labels = [
        None if values is None else labels_of(values, size)
        for values, size in zip(along, array.shape, strict=True)
    ]
    values = Lazy(array.variable)
    if array.ndim > 2 and array.dtype.kind in "biuf":
        words = [given or [str(i) for i in range(n)] for given, n in zip(labels, array.shape, strict=True)]
        numbers = [None if a is None or a.dtype.kind not in "biuf" else a.astype(np.float64) for a in along]
        return as_matrix(values, cfg, where, dims, words, numbers)
    rows, columns = (labels[0], labels[1]) if array.ndim == 2 else (None, None)
    units = {"": str(array.attrs["units"])} if "units" in array.attrs else {}  # of all columns
    return Table(values, columns, units, labels=rows)


def read_netcdf3(path: Path, cfg: DataConfig) -> Table:
    """Return one variable of a netCDF 3 file, decoded by xarray; its values lie in a memory map until they are read."""
    xarray = required(f"{path} is netCDF 3, which", "xarray")
    with damaged(path):
        data = xarray.open_dataset(path, engine="scipy", decode_times=False, cache=False)
        found = variable_of(data, path, cfg.dataset)
        return table_of(found, cfg, f"{path}: {found.name}")
