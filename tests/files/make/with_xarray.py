"""python with_xarray.py FOLDER: maps through time as xarray writes them, packed in two bytes, with land."""

import sys
from pathlib import Path

import numpy as np
import xarray

folder = Path(sys.argv[1])
values = (np.arange(8)[:, None] * 1.5 + np.arange(4) * 0.25 - 4).reshape(8, 2, 2)
values[:, 1, 0] = np.nan
maps = xarray.DataArray(
    values,
    dims=("time", "lat", "lon"),
    coords={"time": np.arange(8), "lat": [50.0, 45.0], "lon": [0.0, 5.0]},
    name="sst",
    attrs={"units": "degC"},
)
packed = {"dtype": "int16", "scale_factor": 0.25, "_FillValue": -32767}
maps.to_netcdf(folder / "xarray-maps.nc", engine="h5netcdf", encoding={"sst": packed})
