"""Reader of Zarr stores, by xarray where their dimensions have names, else by zarr; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.dimensions import as_matrix
from sigmapca_cli.data.readers.hdf5 import pick
from sigmapca_cli.data.readers.labelled import table_of, variable_of
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged
from sigmapca_cli.system.untrusted_zarr import Stored, arrays_of, check_chunks


def read_zarr(path: Path, cfg: DataConfig) -> Table:
    """Return one array of a Zarr store; its values may not be read yet.

    Raise InputError where the packages are not installed, and for stores that could do harm.
    """
    with damaged(path):
        arrays = arrays_of(path)
        zarr = required(f"{path} is a Zarr store, which", "zarr", "xarray")
        wanted = None if cfg.dataset is None else cfg.dataset.strip("/")
        group = group_of(arrays, wanted)
        inside = {name: array for name, array in arrays.items() if name.rpartition("/")[0] == group and name}
        if cfg.recognise and inside and all(array.named for array in inside.values()):
            return of_group(path, cfg, group, inside, wanted)
        several = [name for name, array in arrays.items() if len(array.shape) > 1]
        name = pick(path, several if wanted is None and several else list(arrays), wanted, "dataset")
        check_chunks(arrays[name], path)
        stored: Any = zarr.open_array(arrays[name].folder, mode="r", zarr_format=arrays[name].version)
        many = stored.ndim > 2 and stored.dtype.kind in "biuf"
        return as_matrix(stored, cfg, f"{path}: {name}") if many else Table(stored)


def group_of(arrays: dict[str, Stored], wanted: str | None) -> str:
    """Return the group of the array that is named; else the only group with arrays, else the store itself."""
    if wanted is not None:
        return wanted.rpartition("/")[0]
    groups = {name.rpartition("/")[0] for name in arrays}
    return groups.pop() if len(groups) == 1 else ""


def of_group(path: Path, cfg: DataConfig, group: str, inside: dict[str, Stored], wanted: str | None) -> Table:
    """Return an array of a group whose dimensions have names, decoded by xarray (fill values, scales, coordinates)."""
    import xarray

    for array in inside.values():
        if len(array.shape) < 2:  # xarray reads coordinates at once
            check_chunks(array, path)
    data = xarray.open_dataset(
        path,
        engine="zarr",
        group=group or None,
        consolidated=False,  # what was checked is read, and not a second copy of it
        chunks=None,
        cache=False,
        decode_times=False,
    )
    name = None if wanted is None else wanted.rpartition("/")[2]
    data = data[sorted(data.data_vars, key=str)]  # a folder has no order
    found = variable_of(data, path, name)
    place = f"{group}/{found.name}".lstrip("/")
    if place in inside:
        check_chunks(inside[place], path)
    return table_of(found, cfg, f"{path}: {place}")
