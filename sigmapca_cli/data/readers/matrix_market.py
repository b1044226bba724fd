"""Reader of Matrix Market files, by pandas: a damaged file ends the process in the reader of SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.sparse_files import csr, refuse_empty
from sigmapca_cli.data.readers.table import Table
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged, need_memory

LINE = 1 << 16
MIRRORED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Kind of symmetry: the factor of the entries above the diagonal, which the file leaves out."""


def read_market(path: Path, cfg: DataConfig) -> Table:
    """Return the matrix of a Matrix Market file; one by coordinates as compressed rows."""
    with damaged(path), path.open("rb") as file:
        _, _, form, field, symmetry = file.readline(LINE).decode().lower().split()
        sizes = file.readline(LINE)
        while sizes.startswith(b"%") or not sizes.strip():
            sizes = file.readline(LINE)
        rows, columns, *counted = (int(word) for word in sizes.split())
        by_place, there = form == "coordinate", path.stat().st_size
        if field == "complex" or symmetry not in MIRRORED or not (by_place or symmetry == "general"):
            raise InputError(f"{path} is {field} and {symmetry}: save it as a real, general matrix")
        entries = counted[0] if by_place else rows * columns
        if 2 * entries > there:
            raise InputError(f"{path} claims {entries} values and stores {there} bytes: write it again")
        need_memory(64.0 * entries, path, "save a part of it")
        if by_place:
            refuse_empty((rows, columns), there, path)
        found = numbers_of(file)
        if len(found) != entries:
            raise ValueError(f"{len(found)} of {entries} entries")
        if not by_place:
            return Table(np.ascontiguousarray(found[:, 0].reshape(columns, rows).T))
        return Table(by_coordinates(found, (rows, columns), MIRRORED[symmetry], path))


def numbers_of(file: Any) -> np.ndarray:
    """Return the numbers of the other lines, a row for each; comments are left out."""
    import pandas

    return pandas.read_csv(file, sep=r"\s+", header=None, comment="%", dtype=np.float64).to_numpy()


def by_coordinates(found: np.ndarray, shape: tuple[int, int], mirrored: int, path: Path) -> Any:
    """Return the entries (row, column, value) as compressed rows; places count from 1, and a pattern has no values."""
    from scipy import sparse

    row, column = (found[:, :2] - 1).astype(np.int64).T
    value = found[:, 2] if found.shape[1] > 2 else np.ones(len(found))
    if mirrored:
        off = row != column
        row, column = np.concatenate([row, column[off]]), np.concatenate([column, row[off]])
        value = np.concatenate([value, mirrored * value[off]])
    matrix = sparse.coo_matrix((value, (row, column)), shape=shape).tocsr()
    return csr(matrix.data, matrix.indices, matrix.indptr, shape, path)
