"""Readers of a matrix from a file of any common format, recognised by its first bytes; nothing is unpickled."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.column_files import read_columns
from sigmapca_cli.data.readers.dimensions import as_matrix
from sigmapca_cli.data.readers.hdf5 import pick, read_hdf5
from sigmapca_cli.data.readers.labelled import read_netcdf3
from sigmapca_cli.data.readers.matlab import read_mat
from sigmapca_cli.data.readers.matrix_market import read_market
from sigmapca_cli.data.readers.recordings import SUFFIXES as RECORDINGS
from sigmapca_cli.data.readers.recordings import read_recording
from sigmapca_cli.data.readers.sparse_files import from_archive
from sigmapca_cli.data.readers.table import Table, chosen, names_beside, refuse_words, without_counter
from sigmapca_cli.data.readers.text import read_text
from sigmapca_cli.data.readers.tiff import TIFF, read_tiff
from sigmapca_cli.data.readers.zarr_stores import read_zarr
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.packages import required
from sigmapca_cli.system.untrusted_files import damaged, need_memory
from sigmapca_cli.system.untrusted_zarr import is_zarr

HDF5 = b"\x89HDF\r\n\x1a\n"
PICKLED = "holds Python objects (pickled), which are never loaded: save a plain numeric array"


@contextmanager
def _numpy(path: Path) -> Iterator[None]:
    """Guard like `damaged`, with another message for Python objects, because such a file is not damaged."""
    with damaged(path):
        try:
            yield
        except ValueError as error:
            if "bject" in str(error) or "pickle" in str(error):
                raise InputError(f"{path} {PICKLED}") from None
            raise


def read_npy(path: Path, cfg: DataConfig) -> Table:
    """Return a memory map of the file: nothing is read yet."""
    with _numpy(path), np.errstate(over="ignore"):  # of a shape that is a lie
        return Table(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, cfg: DataConfig) -> Table:
    """Return one array of an .npz archive, with column names from another; or the matrix of a scipy.sparse archive."""
    with _numpy(path), np.load(path, allow_pickle=False) as archive:
        _refuse_workbook(path, archive.zip.namelist())
        sizes = {member.filename.removesuffix(".npy"): member.file_size for member in archive.zip.infolist()}
        if {"format", "shape", "data"} <= set(archive.files):
            return Table(from_archive(path, archive))
        name = pick(path, _matrices(archive) if cfg.key is None else list(archive.files), cfg.key, "key")
        need_memory(sizes[name], path, "save it as .npy or .h5, which are read from disk")
        found = archive[name]
        if not isinstance(found, np.ndarray):  # numpy returns other members of the archive as bytes
            raise InputError(f"{path}: {name!r} is not an array: write it with numpy.savez")
        width = found.shape[1] if found.ndim == 2 else -1
        words = {
            other: archive[other]
            for other in archive.files
            if _header(archive, other)[0] == (width,) and _header(archive, other)[1] in "US"
        }
        return Table(found, names_beside(words, width))


def _header(archive: Any, name: str) -> tuple[tuple[int, ...], str]:
    """Return (shape, kind of type) of an array in an archive, without reading its values."""
    with archive.zip.open(name if name in archive.zip.NameToInfo else f"{name}.npy") as file:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype.kind


def _matrices(archive: Any) -> list[str]:
    """Return the names of the matrices, else of the arrays of more dimensions; of all if a header is unreadable."""
    try:
        sizes = {name: len(_header(archive, name)[0]) for name in archive.files}
    except ValueError:
        return list(archive.files)
    matrices = [name for name, ndim in sizes.items() if ndim == 2]
    return matrices or [name for name, ndim in sizes.items() if ndim > 2] or list(archive.files)


def _refuse_workbook(path: Path, members: list[str]) -> None:
    """Raise InputError for a spreadsheet, which is a zip archive too."""
    if any(name.startswith("xl/") for name in members) or "mimetype" in members:
        raise InputError(f"{path} is a spreadsheet: save the sheet as CSV (UTF-8), or by pandas as Parquet")


def read_safetensors(path: Path, cfg: DataConfig) -> Table:
    """Return one tensor of a safetensors file."""
    safetensors = required(f"{path}: reading it", "safetensors")
    with damaged(path), safetensors.safe_open(str(path), "numpy") as file:
        names = list(file.keys())
        matrices = [name for name in names if len(file.get_slice(name).get_shape()) == 2]
        return Table(file.get_tensor(pick(path, names if cfg.key else matrices, cfg.key, "key")))


SIGNATURES: tuple[tuple[bytes, Callable[[Path, Any], Any]], ...] = (
    (b"\x93NUMPY", read_npy),
    (b"PK\x03\x04", read_npz),
    (b"PK\x05\x06", read_npz),
    (HDF5, read_hdf5),
    (b"CDF", read_netcdf3),
    (b"PAR1", read_columns),
    (b"ARROW1", read_columns),
    (b"FEA1", read_columns),
    (b"MATLAB 5.0", read_mat),
    (b"%%MatrixMarket", read_market),
    *((mark, read_tiff) for mark in TIFF),
)
BINARY_SUFFIXES = {
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".nc",
    ".parquet",
    ".feather",
    ".mat",
    ".safetensors",
    ".xlsx",
}
SELECTIVE = (read_columns, read_text)  # readers that read only the columns asked for
REFUSED = (
    (b"\x1f\x8b", "is gzip-compressed: gunzip it first"),
    (b"{", "is JSON: save it as CSV or Parquet, as pandas and polars do"),
    (b"[{", "is JSON: save it as CSV or Parquet, as pandas and polars do"),
    (b"\x80\x04\x95", "holds Python objects (pickled), which are never loaded: save it as Parquet or .npy"),
    (b"\x80\x05\x95", "holds Python objects (pickled), which are never loaded: save it as Parquet or .npy"),
    (
        b"<stata_dta>",
        "is a file of Stata: save it as CSV or Parquet, as pandas.read_stata(...).to_parquet does",
    ),
    (b"$FL2", "is a file of SPSS: save it as CSV or Parquet, as pandas.read_spss(...).to_parquet does"),
    (b"\xd0\xcf\x11\xe0", "is an old spreadsheet (.xls): save the sheet as CSV (UTF-8)"),
)


def is_hdf5(path: Path) -> bool:
    """Return whether a file has the signature of HDF5, at its beginning or behind a user block."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return has_signature(file)


def has_signature(file: BinaryIO) -> bool:
    """Return whether HDF5 begins in an open file: at 0, or at 512, 1024, 2048, …, behind a block of the user's."""
    size, place = file.seek(0, 2), 0
    while place < min(size, 1 << 24):
        file.seek(place)
        if file.read(8) == HDF5:
            return True
        place = max(512, 2 * place)
    return False


def read_matrix(path: Path, cfg: DataConfig) -> Table:
    """Return the matrix in a file, not yet checked, with the columns that `cfg` selects and their names."""
    if path.is_dir():
        if is_zarr(path):
            return select(read_zarr(path, cfg), cfg, path)
        raise InputError(f"{path} is a folder: data=array needs a file (for images: data=images)")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: write it again")
    with path.open("rb") as file:
        head = file.read(512)
    for signature, why in REFUSED:
        if head.startswith(signature):
            raise InputError(f"{path} {why}")
    reader = reader_of(path, head)
    table = reader(path, cfg)
    if reader in SELECTIVE:
        return without_counter(table, cfg, path)
    return select(table, cfg, path)


def reader_of(path: Path, head: bytes) -> Callable[[Path, Any], Table]:
    """Return the reader of a file that begins with the bytes `head`."""
    if path.name.lower().endswith(RECORDINGS):
        return read_recording
    for signature, reader in SIGNATURES:
        if head.startswith(signature):
            return reader
    # MATLAB 7.3 files are HDF5 behind a block of 512 bytes.
    if head.startswith(b"MATLAB 7.3"):
        logging.getLogger("sigmapca").warning(
            "%s is MATLAB 7.3 (HDF5): data sets appear transposed, see data.transpose", path
        )
        return read_hdf5
    if path.suffix.lower() == ".safetensors" and head[8:9] == b"{":
        return read_safetensors
    if path.suffix.lower() in (".h5", ".hdf5", ".nc") and is_hdf5(path):
        return read_hdf5
    if path.suffix.lower() in BINARY_SUFFIXES:
        raise InputError(f"{path} is not a {path.suffix} file (it starts with {head[:6]!r}): check data.path")
    return read_text


def select(table: Table, cfg: DataConfig, path: Path) -> Table:
    """Return the table with the columns that `cfg` selects; its values may not be read yet."""
    if table.data.ndim > 2 and table.data.dtype.kind in "biuf":
        table = as_matrix(table.data, cfg, path)
    fields = table.data.dtype.names
    if fields:
        return without_counter(_records(table.data, cfg, path), cfg, path)
    if table.data.ndim != 2:
        return table
    if table.names is not None:
        table = without_counter(table, cfg, path)
    width = table.data.shape[1]
    by_name = table.names is not None and getattr(cfg, "expected", None) is not None
    if cfg.columns is None and cfg.drop is None and not by_name:
        return table
    keep = chosen(table.names, width, cfg, path)
    if keep != list(range(width)):
        table.columns = np.array(keep)
    if table.names is not None:
        table.names = [table.names[i] for i in keep]
    if table.grid is not None:
        table.grid = table.grid.of(keep)
    return table


def _records(data: NDArray, cfg: DataConfig, path: Path) -> Table:
    """Return records with named fields, such as those of `frame.to_records()`, as columns."""
    names = list(data.dtype.names or ())
    keep = [names[i] for i in chosen(names, len(names), cfg, path)]
    bad: list[tuple[str | int, str, str]] = [
        (name, "dates" if data.dtype[name].kind in "Mm" else f"of type {data.dtype[name]}", "")
        for name in keep
        if data.dtype[name].kind not in "biuf"
    ]
    if bad:
        raise refuse_words(path, bad, have_numbers=len(bad) < len(keep))
    return Table(np.column_stack([data[name] for name in keep]), keep)
