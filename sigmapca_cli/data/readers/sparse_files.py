"""Sparse matrices as files hold them: archives of scipy.sparse and groups of h5ad, checked, as compressed rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import need_memory
from sigmapca_cli.system.untrusted_hdf5 import SPARSE, as_text, stored

VECTORS = 11
"""Numbers that reading and describing a matrix takes for each of its columns."""
LEAST_BYTES = 1 << 20
"""Bytes that any file counts as: hashed features have a million empty columns beside a few words."""


def csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: tuple[int, int], where: object) -> Any:
    """Return the matrix (n, p) of compressed rows in float64. Raise InputError where the three arrays do not fit.

    Products trust them: a wrong index would read memory outside the matrix.
    """
    from scipy import sparse

    n, p = shape
    refuse_empty(shape, data.nbytes + indices.nbytes + indptr.nbytes, where)
    if data.dtype.kind not in "biuf":
        raise InputError(f"{where} has type {data.dtype}, not numbers: convert it to float32")
    fits = indptr.shape == (n + 1,) and data.ndim == indices.ndim == 1 and len(data) == len(indices)
    fits = fits and indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
    if not fits or indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr.astype(np.int64)) < 0).any():
        raise InputError(f"{where} is damaged: its arrays are not those of compressed rows: save it again")
    if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < p):
        raise InputError(f"{where} is damaged: it has columns outside 0 … {p - 1}: save it again")
    matrix = sparse.csr_matrix((data.astype(np.float64), indices, indptr), shape=shape)
    matrix.sum_duplicates()
    return matrix


def refuse_empty(shape: tuple[int, int], there: int, where: object) -> None:
    """Raise InputError for sides far beyond the bytes that are there: each row and column takes numbers of its own."""
    size = VECTORS * 8.0 * max(shape)
    if size > SPARSE * max(there, LEAST_BYTES):
        raise InputError(
            f"{where} claims {shape[0]} × {shape[1]} values and stores {there} bytes: leave empty columns out"
        )
    need_memory(size, where, "leave empty columns out")


def from_archive(path: Path, archive: Any) -> Any:
    """Return the matrix in a file of scipy.sparse.save_npz; columns (CSC) and coordinates (COO) are converted."""
    from scipy import sparse

    kind = as_text(np.asarray(archive["format"]).item())
    shape = tuple(int(side) for side in archive["shape"])
    if len(shape) != 2:
        raise InputError(f"{path} has {len(shape)} dimensions {shape}, needs 2: reshape it")
    sizes = {member.filename: member.file_size for member in archive.zip.infolist()}
    need_memory(3.0 * sum(sizes.values()), path, "save a part of it")
    if kind == "csr":
        return csr(archive["data"], archive["indices"], archive["indptr"], shape, path)
    if kind == "csc":
        turned = csr(archive["data"], archive["indices"], archive["indptr"], shape[::-1], path)
        return turned.T.tocsr()
    if kind == "coo":
        row, col, data = archive["row"], archive["col"], archive["data"]
        refuse_empty(shape, data.nbytes + row.nbytes + col.nbytes, path)
        return sparse.coo_matrix((data.astype(np.float64), (row, col)), shape=shape).tocsr()
    raise InputError(f"{path} is a sparse matrix of format {kind}: save X.tocsr()")


def is_group(item: Any) -> bool:
    """Return whether an HDF5 group holds a sparse matrix, as anndata writes it."""
    kind = as_text(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    return kind.removesuffix("_matrix") in ("csr", "csc") and {"data", "indices", "indptr"} <= set(item)


def from_group(path: Path, group: Any) -> Any:
    """Return the matrix in a group of an h5ad file: data, indices, indptr and the attribute shape."""
    kind = as_text(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
    given = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    if given is None or len(given) != 2:
        raise InputError(f"{path}: {group.name} has no attribute shape of two numbers: save it again")
    shape = (int(given[0]), int(given[1]))
    parts = [stored(group[name]) for name in ("data", "indices", "indptr")]
    need_memory(3.0 * sum(part.size * part.dtype.itemsize for part in parts), path, "save a part of it")
    data, indices, indptr = (part[...] for part in parts)
    if kind.startswith("csc"):
        return csr(data, indices, indptr, shape[::-1], path).T.tocsr()
    return csr(data, indices, indptr, shape, path)


def is_sparse(data: Any) -> bool:
    """Return whether a matrix is one of compressed rows."""
    return hasattr(data, "indptr") and hasattr(data, "tocsr")
