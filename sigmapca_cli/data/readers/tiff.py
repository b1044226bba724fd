"""Reader of a TIFF as an array: several bands, floating point, any type."""

from pathlib import Path

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged, need_memory

TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""First bytes of a TIFF, and of one of more than 4 GB."""


def read_tiff(path: Path, cfg: DataConfig) -> Table:
    """Return the pixels of a TIFF of any type as an array (rows, columns, bands); values of GDAL's no data are NaN."""
    tifffile = required(f"{path} is a TIFF (pictures: data=images): reading it as an array", "tifffile")
    with damaged(path), tifffile.TiffFile(path) as file:
        series, page = file.series[0], file.pages.first
        need_memory(float(series.nbytes), path, "cut a part of it")
        data = series.asarray()
        if series.axes.startswith(("S", "C")) and data.ndim == 3:
            data = np.moveaxis(data, 0, -1)  # band by band
        given = page.tags.get("GDAL_NODATA") if cfg.recognise else None
        if given is not None:
            value = float(str(given.value).strip("\0 "))
            data = np.where(data == value, np.nan, data.astype(np.float64))
    return Table(data)
