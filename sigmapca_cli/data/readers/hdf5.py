"""Readers of a matrix from HDF5 and netCDF, with packed values and the names of dimension scales."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.annotated import (
    cells_of_labels,
    features_of,
    from_tenx,
    is_anndata,
    samples_of,
    tenx_group,
)
from sigmapca_cli.data.readers.dimensions import as_matrix, labels_of
from sigmapca_cli.data.readers.packed import Decoded, Packing
from sigmapca_cli.data.readers.sparse_files import from_group, is_group
from sigmapca_cli.data.readers.table import Table, listed
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged, need_memory
from sigmapca_cli.system.untrusted_hdf5 import as_text, self_contained, stored

# Attributes by which a variable of netCDF names others that describe it.
DESCRIBING = ("coordinates", "bounds", "ancillary_variables", "grid_mapping", "climatology")
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
REFERENCES = "#refs#/"  # MATLAB 7.3 keeps the parts of cells there


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
    wanted = None if cfg.dataset is None else cfg.dataset.strip("/")
    annotated = cfg.recognise and is_anndata(file)
    place = "X" if wanted is None else wanted
    if place in file and isinstance(file[place], h5py.Group) and is_group(file[place]):
        matrix = from_group(path, file[place])
        names = features_of(file, place, matrix.shape[1]) if cfg.recognise else None
        return Table(matrix, names, labels=samples_of(file, matrix.shape[0]) if annotated else None)
    if wanted is None and cfg.recognise and (group := tenx_group(file)) is not None:
        matrix, names, labels = from_tenx(path, group)
        return Table(matrix, names, labels=labels)
    if wanted is None and annotated and isinstance(file.get("X"), h5py.Dataset):
        wanted = "X"
    if not (names := _data_sets(file)) and (sparse := _sparse_of_matlab(file)):
        raise InputError(
            f"{path}: {sparse[0]} is a sparse matrix of MATLAB 7.3: save full({sparse[0]}), or with -v7"
        )
    found = _chosen(file, path, names, wanted, cfg)
    if isinstance(found, str):
        return _array(file, path, found, cfg, annotated)
    return _columns(file, path, *found)


def _data_sets(file: Any) -> list[str]:
    """Return the names of all data sets but the parts of MATLAB's cells and sparse matrices."""
    import h5py

    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    parts = (REFERENCES, *(f"{name}/" for name in _sparse_of_matlab(file)))
    return [name for name in names if not name.startswith(parts)]


def _sparse_of_matlab(file: Any) -> list[str]:
    """Return the names of the sparse matrices of MATLAB 7.3: a group of three vectors, which are no columns."""
    return [name for name in file if (item := file.get(name)) is not None and "MATLAB_sparse" in item.attrs]


def _chosen(
    file: Any, path: Path, names: list[str], wanted: str | None, cfg: DataConfig
) -> str | tuple[list[str], list[str]]:
    """Return the name of the data set to read, or `_side_by_side` of vectors of equal length."""
    if wanted is not None:
        return pick(path, names, wanted, "dataset")
    beside = _describing(file, names) if cfg.recognise else set()
    numeric = [name for name in names if file[name].dtype.kind in "biufc" and name not in beside]
    matrices = [name for name in numeric if file[name].ndim == 2]
    tables = [name for name in names if file[name].ndim == 1 and file[name].dtype.names]
    wide = [name for name in matrices if min(file[name].shape) > 1]
    if len(wide) == 1 and all("MATLAB_class" in file[name].attrs for name in matrices):
        matrices = wide  # in MATLAB numbers and vectors are matrices too
    if not matrices and not tables and cfg.recognise:
        vectors, notes = _side_by_side(file, names, path)
        if vectors:
            return vectors, notes
        matrices = [name for name in numeric if file[name].ndim > 2]
    return pick(path, matrices or tables, None, "dataset")


def _array(file: Any, path: Path, name: str, cfg: DataConfig, annotated: bool) -> Table:
    """Return one data set as a table, with what the file says about its columns and rows."""
    data = stored(file[name])
    if data.dtype.names:
        need_memory(float(data.size * data.dtype.itemsize), path, "save it as a plain matrix")
        return Table(data[...])
    packing = Packing.of(data) if cfg.recognise else Packing()
    held = Decoded(data, packing) if packing else data
    if data.ndim > 2 and data.dtype.kind in "biuf":
        table = as_matrix(held, cfg, f"{path}: {name}", *(_dimensions(data) if cfg.recognise else ()))
        file.close()
        return table
    columns, labels = _labels_of(file, name, data, annotated) if cfg.recognise else (None, None)
    units = {"": as_text(data.attrs["units"])} if "units" in data.attrs else {}
    if packing:
        return Table(held, columns, units, labels=labels)
    offset = data.id.get_offset()
    if offset is not None and data.dtype.kind in "biuf" and not data.compression and data.size:
        kind, shape = data.dtype, data.shape
        file.close()
        return Table(np.memmap(path, kind, "r", offset, shape), columns, units, labels=labels)
    return Table(data, columns, units, labels=labels)


def _labels_of(file: Any, name: str, data: Any, annotated: bool) -> tuple[list[str] | None, list[str] | None]:
    """Return the names of the columns of a matrix, and those of its rows."""
    if data.ndim != 2:
        return None, None
    if annotated:
        return features_of(file, name, data.shape[1]), samples_of(file, data.shape[0])
    if cells := cells_of_labels(file) if "MATLAB_class" in data.attrs else {}:
        by_side = [[texts for texts in cells.values() if len(texts) == size] for size in data.shape]
        rows, columns = (found[0] if len(found) == 1 else None for found in by_side)
        return (columns, rows) if data.shape[0] != data.shape[1] else (None, None)
    return _names(data, file), None


def _names(data: Any, file: Any) -> list[str] | None:
    """Return the names of the columns: the dimension scale of the second axis, or the names that pandas stored."""
    beside = data.name.removesuffix("_values") + "_items"
    if data.name.endswith("_values") and beside in file:
        return labels_of(stored(file[beside])[...], data.shape[1])
    return _scale(data, 1)


def _along(data: Any, axis: int) -> NDArray | None:
    """Return the values of the dimension scale of an axis; None if it has none."""
    if len(data.dims[axis]) == 0:
        return None
    scale = data.dims[axis][0]
    if as_text(scale.attrs.get("NAME", "")).startswith(NO_VARIABLE):
        return None
    values = stored(scale)[...]
    return values if values.shape == (data.shape[axis],) else None


def _scale(data: Any, axis: int) -> list[str] | None:
    """Return the values of the dimension scale of an axis as names; None if it has none."""
    values = _along(data, axis)
    return None if values is None else labels_of(values, data.shape[axis])


def _dimensions(
    data: Any,
) -> tuple[list[str] | None, list[list[str] | None], list[NDArray[np.float64] | None]]:
    """Return the names of the dimensions of a data set, if all have one, and values along each: words, numbers."""
    scales = [data.dims[i][0].name.rpartition("/")[2] if len(data.dims[i]) else "" for i in range(data.ndim)]
    names = scales if all(scales) and len(set(scales)) == len(scales) else None
    values = [_scale(data, i) for i in range(data.ndim)]
    if names is not None:  # places that are only numbered have no other name
        values = [value or [str(j) for j in range(n)] for value, n in zip(values, data.shape, strict=True)]
    along = [_along(data, i) for i in range(data.ndim)]
    numbers = [None if a is None or a.dtype.kind not in "biuf" else a.astype(np.float64) for a in along]
    return names, values, numbers


def _describing(file: Any, names: Sequence[str]) -> set[str]:
    """Return the variables of netCDF that describe others, as bounds and coordinates do."""
    said = [
        file.attrs.get("coordinates", ""),
        *(file[n].attrs.get(key, "") for n in names for key in DESCRIBING),
    ]
    return {word for text in said for word in as_text(text).split()}


def _side_by_side(file: Any, names: Sequence[str], path: Path) -> tuple[list[str], list[str]]:
    """Return the numeric vectors of equal length, the columns of a data frame, and a note on those left out.

    Dimension scales, and variables that describe others, as their attribute `coordinates` says, are no columns.
    """
    vectors = [
        name
        for name in names
        if file[name].ndim == 1 and file[name].dtype.kind in "biuf" and not file[name].is_scale
    ]
    describing = _describing(file, names)
    left_out = [name for name in vectors if name in describing]
    vectors = [name for name in vectors if name not in describing]
    order = list(file)  # order of creation, if the file stores it; `visititems` is alphabetical
    vectors.sort(key=lambda name: order.index(name) if name in order else len(order))
    lengths = {len(file[name]) for name in vectors}
    notes = (
        [f"{path}: {', '.join(left_out)} describes the others, as the file says: left out"]
        if left_out
        else []
    )
    return (vectors, notes) if len(vectors) > 1 and len(lengths) == 1 else ([], [])


def _columns(file: Any, path: Path, names: list[str], notes: list[str]) -> Table:
    need_memory(float(len(file[names[0]])) * len(names) * 8, path, "save a part of it")
    columns = [Packing.of(file[name]).decode(stored(file[name])[...]) for name in names]
    units = {name: as_text(file[name].attrs["units"]) for name in names if "units" in file[name].attrs}
    return Table(np.column_stack(columns), names, units, notes)
