"""Readers of a matrix from HDF5 and netCDF, with fill values, scale factors and the names of dimension scales."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.sparse_files import from_group, is_group
from sigmapca_cli.data.readers.table import Table, listed
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import as_text, damaged, need_memory, self_contained, stored

FILLS = ("_FillValue", "missing_value")


def pick(path: Path, names: Sequence[str], wanted: str | None, option: str) -> str:
    """Return the array that is named, or the only one; raise InputError if there is no such array or a choice."""
    shown = listed(names) or "none"
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{path} has no {wanted!r}; it has {shown}: give data.{option}=")
        return wanted
    if len(names) != 1:
        raise InputError(f"{path} has {len(names)} arrays ({shown}): choose one with data.{option}=")
    return names[0]


def read_hdf5(path: Path, cfg: DataConfig) -> Table:
    """Return a memory map if the data set is contiguous, else the open h5py data set, or vectors as columns."""
    import h5py

    with damaged(path):
        file = h5py.File(path, "r", locking=False)
        try:
            return _table(file, path, cfg)
        except Exception:
            file.close()  # HDF5 does not allow to replace a file that is open in the process
            raise


def _table(file: Any, path: Path, cfg: DataConfig) -> Table:
    import h5py

    self_contained(file)
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    wanted = None if cfg.dataset is None else cfg.dataset.strip("/")
    place = "X" if wanted is None else wanted
    if place in file and isinstance(file[place], h5py.Group) and is_group(file[place]):
        matrix = from_group(path, file[place])
        return Table(matrix, _genes(file, matrix.shape[1]) if cfg.recognise else None)
    matrices = [name for name in names if file[name].ndim == 2 and file[name].dtype.kind in "biufc"]
    tables = [name for name in names if file[name].ndim == 1 and file[name].dtype.names]
    if wanted is None and not matrices and not tables and cfg.recognise:
        together = _side_by_side(file, names)
        if together:
            return _columns(file, path, together)
    name = pick(path, names if wanted is not None else matrices or tables, wanted, "dataset")
    data = stored(file[name])
    if data.dtype.names:
        need_memory(float(data.size * data.dtype.itemsize), path, "save it as a plain matrix")
        return Table(data[...])
    columns = _names(data, file) if cfg.recognise else None
    units = {"": as_text(data.attrs["units"])} if "units" in data.attrs else {}
    fill, scale, offset = _encoding(data) if cfg.recognise else ([], 1.0, 0.0)
    if fill or (scale, offset) != (1.0, 0.0):
        return Table(Decoded(data, fill, scale, offset), columns, units)
    place = data.id.get_offset()
    if place is not None and data.dtype.kind in "biuf" and not data.compression and data.size:
        kind, shape = data.dtype, data.shape
        file.close()
        return Table(np.memmap(path, kind, "r", place, shape), columns, units)
    return Table(data, columns, units)


def _genes(file: Any, width: int) -> list[str] | None:
    """Return the names of the features of an h5ad file: the index of its group `var`."""
    var = file.get("var")
    key = as_text(var.attrs.get("_index", "_index")) if var is not None and hasattr(var, "attrs") else ""
    if not key or key not in var or not hasattr(var[key], "dtype"):
        return None
    return _labels(stored(var[key])[...], width)


class Decoded:
    """A data set (n, p) decoded by its attributes: fill values become NaN, then times scale_factor plus add_offset.

    float64; read in blocks, like an h5py data set.
    """

    def __init__(self, data: Any, fill: Sequence[float], scale: float, offset: float) -> None:
        self._data, self._fill, self._scale, self._offset = data, fill, scale, offset
        self.shape, self.ndim, self.dtype = data.shape, data.ndim, np.dtype(np.float64)
        self.size, self.chunks = data.size, data.chunks

    def __getitem__(self, index: Any) -> NDArray[np.float64]:
        return decoded(np.asarray(self._data[index]), self._fill, self._scale, self._offset)


def decoded(raw: NDArray, fill: Sequence[float], scale: float, offset: float) -> NDArray[np.float64]:
    """Return the decoded values of stored ones, by the conventions of netCDF."""
    out = raw.astype(np.float64)
    for value in fill:
        out[raw == np.asarray(value).astype(raw.dtype)] = np.nan
    return out * scale + offset if (scale, offset) != (1.0, 0.0) else out


def _encoding(data: Any) -> tuple[list[float], float, float]:
    """Return (fill values, scale_factor, add_offset) from the attributes."""
    fill = [float(v) for name in FILLS if name in data.attrs for v in np.ravel(data.attrs[name]) if v == v]
    scale, offset = (
        float(np.ravel(data.attrs[name])[0]) if name in data.attrs else neutral
        for name, neutral in (("scale_factor", 1.0), ("add_offset", 0.0))
    )
    return fill, scale, offset


def _names(data: Any, file: Any) -> list[str] | None:
    """Return the names of the columns: the dimension scale of the second axis, or the names that pandas stored."""
    beside = data.name.removesuffix("_values") + "_items"
    if data.name.endswith("_values") and beside in file:
        return _labels(stored(file[beside])[...], data.shape[1])
    if data.ndim == 2 and len(data.dims[1]) > 0:
        return _labels(stored(data.dims[1][0])[...], data.shape[1])
    return None


def _labels(values: NDArray, width: int) -> list[str] | None:
    """Return the values of a scale as names; None if they only number the columns or do not have one per column."""
    if values.shape != (width,) or (values.dtype.kind in "iu" and np.array_equal(values, np.arange(width))):
        return None
    if values.dtype.kind in "iuf":
        return [f"{value:g}" for value in values.tolist()]
    return [as_text(value) for value in values.tolist()] if values.dtype.kind in "SO" else None


def _side_by_side(file: Any, names: Sequence[str]) -> list[str]:
    """Return the numeric vectors of equal length that are not dimension scales: the columns of a data frame."""
    vectors = [
        name
        for name in names
        if file[name].ndim == 1 and file[name].dtype.kind in "biuf" and not file[name].is_scale
    ]
    order = list(file)  # order of creation, if the file stores it; `visititems` is alphabetical
    vectors.sort(key=lambda name: order.index(name) if name in order else len(order))
    lengths = {len(file[name]) for name in vectors}
    return vectors if len(vectors) > 1 and len(lengths) == 1 else []


def _columns(file: Any, path: Path, names: Sequence[str]) -> Table:
    need_memory(float(len(file[names[0]])) * len(names) * 8, path, "save a part of it")
    columns = [decoded(stored(file[name])[...], *_encoding(file[name])) for name in names]
    units = {name: as_text(file[name].attrs["units"]) for name in names if "units" in file[name].attrs}
    return Table(np.column_stack(columns), list(names), units)
