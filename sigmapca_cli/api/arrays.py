"""Data in memory, written once to a file beside the runs: a run can then be shown, evaluated and made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.matrix.arrays import check_matrix, plain
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError

FOLDER = "arrays"


def stored(data: Any, outputs: str | None) -> Path:
    """Return the file that holds data from memory: <outputs>/arrays/<hash of the values>.npy, or .npz if sparse.

    The same values have the same file, which is written once. Raise InputError for what is no matrix of numbers.
    """
    folder = outputs_root(outputs) / FOLDER
    if hasattr(data, "tocsr") and hasattr(data, "nnz"):
        return stored_sparse(data, folder)
    values = as_matrix(data)
    digest = hashlib.sha256(repr((values.dtype.descr, values.shape)).encode())
    digest.update(np.ascontiguousarray(values).view(np.uint8).reshape(-1).data)
    path = folder / f"{digest.hexdigest()[:20]}.npy"
    write_once(path, lambda file: np.save(file, values, allow_pickle=False))
    return path


def write_once(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file, unless it is there; raise InputError if its folder cannot be made."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{path.parent}: cannot be created ({problem.strerror}); give outputs=") from None
    with replacing(path) as aside, open(aside, "wb") as file:
        write(file)


def as_matrix(data: Any) -> np.ndarray:
    """Return data as a plain matrix, or of a table as records that keep the names of its columns."""
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return records(data)
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        data = np.ma.filled(data.astype(np.float64), np.nan)  # missing values, which data.missing treats
    try:
        values = np.asarray(data)
    except ValueError as problem:  # rows of different lengths
        raise InputError(f"data: no matrix of numbers ({problem})") from None
    check_matrix(values, "data")
    return plain(values)


def records(table: Any) -> np.ndarray:
    """Return a table of pandas or polars as records (n,) of float64. Raise InputError for columns of other things."""
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        raise InputError(f"data: two columns have the name {next(n for n in names if names.count(n) > 1)!r}")
    if not names or not len(table):
        raise InputError(f"data: is empty, {len(table)} × {len(names)}: give samples × features")
    values = np.empty(len(table), [(name, np.float64) for name in names])
    for name, column in zip(names, table.columns, strict=True):
        found = table[column].to_numpy()
        try:
            if found.dtype.kind in "Mm":
                raise TypeError
            values[name] = found
        except (TypeError, ValueError):
            raise InputError(f"data: column {name!r} holds no numbers: leave it out, or encode it") from None
    return values


def stored_sparse(data: Any, folder: Path) -> Path:
    """Return the file of a sparse matrix of SciPy."""
    from scipy import sparse

    matrix = sparse.csr_matrix(data)
    check_matrix(matrix, "data")
    matrix.sum_duplicates()
    digest = hashlib.sha256(repr((matrix.shape, matrix.dtype.str)).encode())
    for part in (matrix.indptr, matrix.indices, matrix.data):
        digest.update(part.tobytes())
    path = folder / f"{digest.hexdigest()[:20]}.npz"
    write_once(path, lambda file: sparse.save_npz(file, matrix, compressed=False))
    return path
