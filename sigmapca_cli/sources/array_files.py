"""Reading a matrix from a file of any common format, recognised by its first bytes; nothing is unpickled."""

import csv
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.limits import damaged, need_memory, reason, self_contained, stored

PICKLED = "holds Python objects (pickled), which are never loaded: save a plain numeric array"


@contextmanager
def _numpy(path: Path) -> Iterator[None]:
    """As `damaged`; objects have a word of their own, because such a file is whole."""
    with damaged(path):
        try:
            yield
        except ValueError as error:
            if "bject" in str(error) or "pickle" in str(error):
                raise InputError(f"{path} {PICKLED}") from None
            raise


def read_npy(path: Path, cfg: Any) -> NDArray:
    """A memory map of the file: nothing is read yet."""
    with _numpy(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _pick(path: Path, names: list[str], wanted: str | None, option: str) -> str:
    listed = ", ".join(names) or "none"
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{path} has no {wanted!r}; it has {listed}: give data.{option}=")
        return wanted
    if len(names) != 1:
        raise InputError(f"{path} has {len(names)} arrays ({listed}): choose one with data.{option}=")
    return names[0]


def read_npz(path: Path, cfg: Any) -> NDArray:
    with _numpy(path), np.load(path, allow_pickle=False) as archive:
        name = _pick(path, list(archive.files), cfg.key, "key")
        sizes = {member.filename.removesuffix(".npy"): member.file_size for member in archive.zip.infolist()}
        need_memory(sizes[name], path, "save it as .npy or .h5, which are read from disk")
        found = archive[name]
        if not isinstance(found, np.ndarray):  # numpy hands over what is no array as bytes
            raise InputError(f"{path}: {name!r} is no array: write it with numpy.savez")
        return found


def read_hdf5(path: Path, cfg: Any) -> Any:
    """A memory map where the data set lies in one piece, else the open h5py data set."""
    import h5py

    with damaged(path):
        file = h5py.File(path, "r", locking=False)
        try:
            return _data_set(file, path, cfg)
        except Exception:
            file.close()  # HDF5 lets nobody replace a file that is open in the process
            raise


def _data_set(file: Any, path: Path, cfg: Any) -> Any:
    import h5py

    self_contained(file)
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    matrices = [name for name in names if file[name].ndim == 2]
    wanted = None if cfg.dataset is None else cfg.dataset.strip("/")
    name = _pick(path, names if wanted is not None else matrices, wanted, "dataset")
    data = stored(file[name])
    offset = data.id.get_offset()
    native = data.dtype.kind in "biuf" and not data.compression
    if offset is not None and native and data.size:
        file_dtype, shape = data.dtype, data.shape
        file.close()
        return np.memmap(path, file_dtype, "r", offset, shape)
    return data


def read_mat(path: Path, cfg: Any) -> NDArray:
    from scipy.io import loadmat, whosmat

    with damaged(path, "save it again (MATLAB 5 format)"):
        sizes = [
            float(np.prod(shape, dtype=float)) * 8 for _, shape, kind in whosmat(path) if kind != "sparse"
        ]
        need_memory(sum(sizes), path, "save one variable, or .npy or .h5, which are read from disk")
        variables = loadmat(path)
    names = [name for name, value in variables.items() if not name.startswith("__") and np.ndim(value) == 2]
    value = variables[_pick(path, names, cfg.key, "key")]
    if hasattr(value, "toarray"):
        need_memory(np.prod(value.shape) * 8.0, path, "it is sparse: save a part of it")
        return value.toarray()
    return np.asarray(value)


def read_parquet(path: Path, cfg: Any) -> NDArray:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{path} is Parquet: pip install pyarrow (or sigmapca-cli[parquet])") from None
    with damaged(path):
        facts = parquet.ParquetFile(path).metadata
        need_memory(facts.num_rows * facts.num_columns * 8.0, path, "save a part of it, or .npy")
        table = parquet.read_table(path)
    columns = []
    for name in table.column_names:
        with damaged(path):
            values = table[name].to_numpy()
        if values.dtype.kind not in "biuf":
            raise InputError(f"{path}, column {name!r} is {table[name].type}, not numbers: leave it out")
        columns.append(values)
    if not columns:
        raise InputError(f"{path} has no columns: give a table of numbers")
    return np.column_stack(columns)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _delimiter(line: str) -> str | None:
    """Tab, comma or semicolon, whichever the line has most of; None is white space."""
    best = max("\t,;", key=line.count)
    return best if best in line else None


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]


def read_text(path: Path, cfg: Any) -> NDArray[np.float64]:
    """CSV, TSV or columns of numbers; a first line with words is a header unless data.header=no."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            skipped = 0
            first = file.readline()
            while first and not first.strip():
                skipped, first = skipped + 1, file.readline()
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is in no known format (npy, npz, csv, h5, parquet, mat): convert it"
        ) from None
    if not first:
        raise InputError(f"{path} is empty: give a file with numbers")
    delimiter = _delimiter(first)
    names = _split(first, delimiter)
    words = not all(_is_number(field) for field in names)
    header = {"yes": True, "no": False, "auto": words}[cfg.header]
    skip = skipped + int(header)
    try:
        with path.open(encoding="utf-8-sig") as file:
            for _ in range(skip):
                next(file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "no data": refused with our own words
                found = np.loadtxt(file, delimiter=delimiter, ndmin=2, comments=None, quotechar='"')
            if not found.size:
                what = f"a header ({', '.join(names)[:60]})" if header else "a line"
                raise InputError(f"{path} has {what} and no rows: give rows of numbers")
            return found
    except (ValueError, StopIteration) as error:
        raise InputError(_text_message(path, reason(error), names if header else [], skip)) from None


def _text_message(path: Path, reason: str, names: list[str], skip: int) -> str:
    found = re.search(r"string '(.*)' to float64 at row (\d+), column (\d+)", reason)
    if found:
        text, row, column = found[1], int(found[2]), int(found[3])
        named = f" ({names[column - 1]})" if column <= len(names) else ""
        what = repr(text) if text.strip() else "an empty field"
        return (
            f"{path}, line {row + 1 + skip}, column {column}{named}: {what} is not a number: "
            f"remove the column, or fill the field"
        )
    found = re.search(r"from (\d+) to (\d+) at row (\d+)", reason)
    if found:
        line = int(found[3]) + skip
        return f"{path}, line {line}: {found[2]} fields where the lines before have {found[1]}: mend the line"
    return f"{path} cannot be read as a table of numbers ({reason}): check the file"


SIGNATURES: tuple[tuple[bytes, Callable[[Path, Any], Any]], ...] = (
    (b"\x93NUMPY", read_npy),
    (b"PK\x03\x04", read_npz),
    (b"PK\x05\x06", read_npz),
    (b"\x89HDF\r\n\x1a\n", read_hdf5),
    (b"PAR1", read_parquet),
    (b"MATLAB 5.0", read_mat),
)
BINARY_SUFFIXES = {".npy", ".npz", ".h5", ".hdf5", ".parquet", ".mat"}


def is_hdf5(path: Path) -> bool:
    """Whether a file starts as HDF5 does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def read_matrix(path: Path, cfg: Any) -> Any:
    """The matrix in a file: a numpy array, a memory map or an open h5py data set, not yet checked."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: data=array needs a file (for images: data=images)")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: write it again")
    with path.open("rb") as file:
        head = file.read(512)
    if head[:2] == b"\x1f\x8b":
        raise InputError(f"{path} is gzip-compressed: gunzip it first")
    for signature, reader in SIGNATURES:
        if head.startswith(signature):
            return reader(path, cfg)
    # MATLAB 7.3 files are HDF5 behind a block of 512 bytes.
    if head.startswith(b"MATLAB 7.3"):
        logging.getLogger("sigmapca").warning(
            "%s is MATLAB 7.3 (HDF5): data sets appear transposed, see data.transpose", path
        )
        return read_hdf5(path, cfg)
    if path.suffix.lower() in BINARY_SUFFIXES:
        raise InputError(f"{path} is not a {path.suffix} file (it starts with {head[:6]!r}): check data.path")
    return read_text(path, cfg)
