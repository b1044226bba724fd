"""Reader of netCDF 3, by xarray and SciPy; netCDF 4 is HDF5."""

from __future__ import annotations

from pathlib import Path

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.labelled import table_of, variable_of
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged


def read_netcdf3(path: Path, cfg: DataConfig) -> Table:
    """Return one variable of a netCDF 3 file, decoded by xarray; its values lie in a memory map until they are read."""
    xarray = required(f"{path} is netCDF 3, which", "xarray")
    with damaged(path):
        data = xarray.open_dataset(path, engine="scipy", decode_times=False, cache=False)
        found = variable_of(data, path, cfg.dataset)
        return table_of(found, cfg, f"{path}: {found.name}")
