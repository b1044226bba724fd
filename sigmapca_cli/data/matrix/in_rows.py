"""A matrix of any type in a form whose rows are fast to gather: in memory, or row by row in a file.

What a program holds comes first in the form that NumPy, tables and SciPy have: tensors, lazy tables, masked arrays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.on_disk import row_file
from sigmapca_cli.data.on_disk.row_file import PageLedger, RowFile, RowSlices
from sigmapca_cli.data.readers.sparse_files import is_sparse
from sigmapca_cli.data.source import Index
from sigmapca_cli.system.errors import InputError

CONVERT_BLOCK = 32 << 20
"""Bytes that are converted at once."""


def check_matrix(data: Any, where: str) -> None:
    """Check type, dimensions and size before any value is read; raise InputError if they are unusable."""
    check_numbers(data.dtype, where)
    if data.ndim != 2:
        hint = "X[:, None] for one feature" if data.ndim == 1 else "reshape it"
        raise InputError(f"{where} has {data.ndim} dimensions {tuple(data.shape)}, needs 2: {hint}")
    if data.shape[0] == 0 or data.shape[1] == 0:
        raise InputError(f"{where} is empty, {data.shape[0]} × {data.shape[1]}: give samples × features")


def check_numbers(dtype: np.dtype, where: str) -> None:
    """Raise InputError if values of this type are no real numbers."""
    if dtype.kind == "c":
        raise InputError(f"{where} is complex ({dtype}): give real numbers, for example its absolute value")
    if dtype.kind == "O":
        raise InputError(f"{where} holds Python objects: save a plain numeric array")
    if dtype.kind not in "biuf":
        raise InputError(f"{where} has type {dtype}, not numbers: convert it to float32")


def plain(data: NDArray) -> NDArray:
    """Return the array in C order and native byte order; bool becomes uint8, float16 becomes float32."""
    dtype = data.dtype.newbyteorder("=")
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    if dtype == np.float16:
        dtype = np.dtype(np.float32)
    return np.ascontiguousarray(data, dtype=dtype)


def block_reader(data: Any, transpose: bool) -> Callable[[int, int], NDArray]:
    """Return a function (start, stop) that reads these rows of a matrix of any array type, or of its transpose."""
    if isinstance(data, RowFile):
        if transpose:
            slices = RowSlices(data, range(len(data)))
            return lambda start, stop: slices[:, start:stop].T
        return data.block
    if transpose:
        return lambda start, stop: np.asarray(data[:, start:stop]).T
    return lambda start, stop: np.asarray(data[start:stop])


def usable(data: Any, transpose: bool, columns: Index | None = None) -> Any:
    """Return the matrix in a form whose rows are fast to gather: in memory, or row by row in a file.

    Small data are read into memory. Large data stay in their file if each row is contiguous; otherwise (Fortran
    order, transposed, compressed or chunked HDF5) they are converted once, in blocks.
    """
    if is_sparse(data):
        data = data.T.tocsr() if transpose else data
        return data if columns is None else data[:, columns].tocsr()
    if isinstance(data, RowFile) and columns is None and not transpose:
        return data  # a table too large for memory
    if not isinstance(data, RowFile) and data.size * data.dtype.itemsize <= row_file.MEMORY_LIMIT:
        whole = np.asarray(data[...])
        whole = whole.T if transpose else whole
        return plain(whole if columns is None else whole[:, columns])
    turned = data.T if transpose and isinstance(data, np.ndarray) else data
    if columns is None and isinstance(turned, np.memmap) and turned.flags.c_contiguous:
        return RowFile.under(turned)
    return _converted(data, transpose, columns)


def _converted(data: Any, transpose: bool, chosen: Index | None) -> RowFile:
    """Return the matrix converted to a scratch file, row by row."""
    rows, columns = data.shape[::-1] if transpose else data.shape
    columns = columns if chosen is None else len(chosen)
    read = block_reader(data, transpose)
    dtype = plain(np.empty((1, 1), data.dtype)).dtype
    size = rows * columns * dtype.itemsize
    logging.getLogger("sigmapca").info("converting %d × %d values once (%.1f GB)", rows, columns, size / 1e9)
    scratch, pages = RowFile.scratch((rows, columns), dtype), PageLedger(data)
    step = max(1, CONVERT_BLOCK // (data.shape[0 if transpose else 1] * dtype.itemsize))
    for start in range(0, rows, step):
        block = read(start, min(start + step, rows))
        block = block if chosen is None else block[:, chosen]
        scratch.write(start, block)
        pages.touch(columns, block.nbytes)
    return scratch


def plain_form(data: Any, what: str = "data") -> Any:
    """Return data as an array, a table or a sparse matrix; what is one already is returned as it is.

    A tensor comes from its device and its graph, in float32 if NumPy has not its type; a sparse one as a matrix of
    SciPy. A lazy table is collected. Masked values are nan. Raise InputError for an array that cannot be read here.
    """
    if hasattr(data, "collect") and hasattr(data, "lazy"):
        return data.collect()
    if hasattr(data, "detach") and hasattr(data, "layout"):
        return of_tensor(data.detach(), what)
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype(np.float64), np.nan) if np.ma.is_masked(data) else data.data
    if hasattr(data, "__array_namespace__") and not isinstance(data, np.ndarray):
        return of_array(data, what)
    return data


def of_tensor(tensor: Any, what: str) -> Any:
    """Return a tensor of torch as an array, or as a matrix of SciPy if it is sparse."""
    if tensor.is_meta or tensor.is_nested:
        kind = "of the meta device, which has no values" if tensor.is_meta else "with rows of several lengths"
        raise InputError(f"{what}: a tensor {kind}; give a dense one")
    tensor = (tensor.dequantize() if tensor.is_quantized else tensor).cpu()
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "strided":
        return numbers_of(tensor)
    if layout not in ("sparse_coo", "sparse_csr", "sparse_csc") or tensor.ndim != 2:
        raise InputError(
            f"{what}: a tensor of layout {layout}, {tensor.ndim} dimensions; give its to_dense()"
        )
    from scipy import sparse

    if layout == "sparse_coo":
        tensor = tensor.coalesce()
        return sparse.coo_matrix(
            (numbers_of(tensor.values()), tensor.indices().numpy()), shape=tuple(tensor.shape)
        )
    rows = layout == "sparse_csr"
    bounds, places = (
        (tensor.crow_indices(), tensor.col_indices())
        if rows
        else (tensor.ccol_indices(), tensor.row_indices())
    )
    made = sparse.csr_matrix if rows else sparse.csc_matrix
    return made((numbers_of(tensor.values()), places.numpy(), bounds.numpy()), shape=tuple(tensor.shape))


def numbers_of(tensor: Any) -> np.ndarray:
    """Return a dense tensor as an array, in float32 if NumPy has not its type."""
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16, float8
        return np.asarray(tensor.float().numpy())


def of_array(data: Any, what: str) -> np.ndarray:
    """Return an array of another library that follows the array API as one of NumPy."""
    try:
        found = np.asarray(data)
    except Exception:  # each library has its own error for an array on a device
        name = type(data).__module__.partition(".")[0]
        raise InputError(f"{what}: an array of {name} that NumPy cannot read; give a NumPy array") from None
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found
