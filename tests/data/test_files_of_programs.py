"""Small files that programs wrote, kept in `tests/files` with the script that made each in `tests/files/make`.

`make full` lets the programs that are installed write them again.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_sources import source_of, values
from mechanisms import every

from sigmapca_cli.system.errors import InputError

FILES = Path(__file__).parent.parent / "files"
TABLE = np.arange(8)[:, None] * 1.5 + np.arange(3) * 0.25 - 4
NAMES = ("height", "weight", "age")
MAPS = np.arange(8)[:, None] * 1.5 + np.arange(4) * 0.25 - 4
COUNTS = np.floor(np.abs(TABLE))
VOLTS = 1e-6 * TABLE[np.arange(128) % 8]
LAND = np.array([[1.5, 2.25, 3, 4], [5.5, np.nan, 7.25, 8], [9, 10.5, 11, 12.75]])
SHARES = np.column_stack([TABLE[:4, :2], [5, 6, 12.5, 7]])


@dataclass
class Kept:
    """What is read from a file: rows, names, labels of rows; the keys that it takes, and how exact it is."""

    rows: np.ndarray
    names: tuple[str, ...] | None = NAMES
    labels: list[str] | None = None
    keys: dict[str, Any] = field(default_factory=dict)
    exact: float = 0.0


NUMBERS = [str(i) for i in range(8)]
CELLS = [f"cell{i}" for i in range(8)]
EXPECTED: dict[str, Kept] = {
    "pandas.csv": Kept(TABLE, labels=NUMBERS),
    "pandas-german.csv": Kept(TABLE),
    "pandas-index.parquet": Kept(TABLE, labels=["3", "1", "4", "15", "9", "2", "6", "5"]),
    "pandas-dates.parquet": Kept(TABLE),
    "polars.csv": Kept(TABLE),
    "polars-array.parquet": Kept(TABLE, None, keys={"columns": ["embedding"]}),
    "r-table.txt": Kept(TABLE, ("height", "body weight", "age"), [str(i + 1) for i in range(8)]),
    "r.csv": Kept(TABLE, ("height", "body weight", "age"), [str(i + 1) for i in range(8)]),
    "r-german.csv": Kept(TABLE, ("height", "body weight", "age")),
    "r-missing.csv": Kept(
        np.delete(TABLE, 2, axis=0), ("height", "body weight", "age"), keys={"missing": "drop"}
    ),
    "octave-7.mat": Kept(TABLE),
    "octave-6.mat": Kept(TABLE, None),
    "octave.txt": Kept(TABLE, None),
    "libreoffice.csv": Kept(SHARES, ("height", "weight", "share")),
    "scanpy.h5ad": Kept(COUNTS[:, [2, 0]], ("ENSG3", "ENSG1"), CELLS),
    "scanpy.h5ad raw": Kept(COUNTS, ("ENSG1", "ENSG2", "ENSG3"), CELLS, {"dataset": "raw/X"}),
    "scanpy.h5ad layer": Kept(
        COUNTS[:, [2, 0]] + 0.5, ("ENSG3", "ENSG1"), CELLS, {"dataset": "layers/dense"}
    ),
    "xarray-maps.nc": Kept(
        MAPS[:, [0, 1, 3]],
        ("lat=50 lon=0", "lat=50 lon=5", "lat=45 lon=5"),
        keys={"rows": "time"},
    ),
    "gdal.tif": Kept(np.nan_to_num(LAND, nan=np.nanmean(LAND[:, 1])), None, keys={"missing": "mean"}),
    "mne_raw.fif": Kept(VOLTS, ("Fp1", "Cz", "Pz"), exact=1e-12),
    "mne.edf": Kept(VOLTS, ("Fp1", "Cz", "Pz"), exact=1e-9),
    "mne.vhdr": Kept(VOLTS, ("Fp1", "Cz", "Pz"), exact=1e-9),
    "mne.set": Kept(VOLTS, ("Fp1", "Cz", "Pz"), exact=1e-9),
}
ORDINARY = [
    "pandas-index.parquet", "polars-array.parquet", "r-table.txt", "r-german.csv", "octave-7.mat", "libreoffice.csv",
    "scanpy.h5ad raw", "xarray-maps.nc", "gdal.tif", "mne.edf",
]  # fmt: skip
PROGRAMS = {
    "with_pandas.py": ("pandas",),
    "with_polars.py": ("polars",),
    "with_xarray.py": ("xarray", "h5netcdf"),
    "with_anndata.py": str(FILES.parents[1] / ".venv-anndata" / "bin" / "python"),  # another pandas
    "with_mne.py": ("mne", "edfio", "pybv", "eeglabio"),
    "with_r.R": "Rscript",
    "with_octave.m": "octave",
    "with_gdal.sh": "gdal_translate",
    "with_libreoffice.sh": "soffice",
}
"""What each script needs: modules of Python, or a command."""


def check(folder: Path, case: str) -> None:
    """Read a file of a program, and compare it with what it must hold."""
    name = case.split()[0]
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    if name.startswith("mne"):
        pytest.importorskip("mne")
    if name.endswith(".tif"):
        pytest.importorskip("tifffile")
    kept = EXPECTED[case]
    source = source_of(folder / name, **kept.keys)
    assert source.names == kept.names
    assert kept.labels is None or list(source.labels) == kept.labels
    rows = values(source)
    np.testing.assert_allclose(rows, kept.rows, rtol=0, atol=kept.exact)


@pytest.mark.parametrize("case", every(EXPECTED, ORDINARY))
def test_a_kept_file_is_read(case):
    check(FILES, case)


def test_a_spreadsheet_is_refused_with_the_way_on():
    with pytest.raises(InputError, match="CSV"):
        source_of(FILES / "libreoffice.ods")


def test_every_kept_file_is_expected():
    kept = {file.name for file in FILES.iterdir() if file.is_file()}
    beside = {"mne.eeg", "mne.vmrk", "libreoffice.ods"}  # read with another, or refused
    assert kept - beside == {case.split()[0] for case in EXPECTED}
    assert {file.name for file in (FILES / "make").iterdir()} == set(PROGRAMS)


@pytest.mark.full
@pytest.mark.parametrize("script", PROGRAMS)
def test_the_program_itself_writes_what_is_read(script, tmp_path):
    needs = PROGRAMS[script]
    if isinstance(needs, str):
        if not (command := shutil.which(needs)):
            pytest.skip(f"skipped: no {needs} here; .ci/run full installs it")
        words = ["sh"] if script.endswith(".sh") else [command]
    else:
        for module in needs:
            pytest.importorskip(module)
        words = [sys.executable]
    done = subprocess.run(
        [*words, str(FILES / "make" / script), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    written = {file.name for file in tmp_path.iterdir()}
    cases = [case for case in EXPECTED if case.split()[0] in written]
    assert cases
    for case in cases:
        check(tmp_path, case)
