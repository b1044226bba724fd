"""Sparse rows: a matrix in compressed rows (CSR) that is centred and scaled in its products, and never made dense.

Only the rows of a batch, or of a block, are written out with their zeros, where a method asks for rows.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.processes import available_threads, mapped
from sigmapca_cli.sources.base import Index, Source
from sigmapca_cli.sources.centred import parts_of
from sigmapca_cli.sources.eigenpairs import by_vectors
from sigmapca_cli.sources.implicit import WIDE, Axes
from sigmapca_cli.sources.options import Standardisation, half_of, need_two_samples
from sigmapca_cli.sources.statistics import Moments, signed_axes, streamed_moments
from sigmapca_cli.untrusted_files import as_text, need_memory, stored

Array = NDArray[np.float64]

BLOCK = 1 << 16
"""Rows of a block of a product."""
VECTOR_BLOCKS = 8
"""Number of blocks of rows of a product with one vector, which threads share."""
DENSE_BLOCK = 1 << 20
"""Entries of a block of rows with their zeros."""
CANCELS = 1e6
"""mean²/variance beyond which E[x²] − mean² would lose more digits than are asked for."""


def csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: tuple[int, int], where: object) -> Any:
    """Return the matrix (n, p) of compressed rows in float64. Raise InputError where the three arrays do not fit.

    Products trust them: a wrong index would read memory outside the matrix.
    """
    from scipy import sparse

    n, p = shape
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


class SparseSource(Source):
    """Rows of a matrix of compressed rows (n, p)."""

    in_memory = sparse = True

    def __init__(
        self,
        name: str,
        X: Any,
        where: object,
        options: Standardisation,
        half: str = "all",
        place: Callable[[int, int], str] | None = None,
        least: int = 2,
    ) -> None:
        """`place`: (row, column) to words that locate the value in its file; `least`: smallest number of rows."""
        part = half_of(X.shape[0], half)
        self.name, self.X = name, X if half == "all" else X[part]
        self.n, self.p = self.X.shape
        self.pixels = np.dtype(np.float64)
        if self.n < least:
            need_two_samples(self.n, str(where))
        self._refuse_nonfinite(where, place)
        digest = hashlib.sha256(b"csr")
        for array in (self.X.indptr.astype(np.int64), self.X.indices.astype(np.int64), self.X.data):
            digest.update(np.ascontiguousarray(array).data)
        logging.getLogger("sigmapca").info(
            "%s: sparse, %d of %d × %d values are stored", where, self.X.nnz, self.n, self.p
        )
        self._standardise(options, digest.digest())

    def _refuse_nonfinite(self, where: object, place: Callable[[int, int], str] | None) -> None:
        bad = np.flatnonzero(~np.isfinite(self.X.data))
        if not len(bad):
            return
        row = int(np.searchsorted(self.X.indptr, bad[0], side="right")) - 1
        column = int(self.X.indices[bad[0]])
        at = place(row, column) if place else f"at row {row}, column {column}, counted from 0"
        kind = "NaN" if np.isnan(self.X.data[bad[0]]) else "infinity"
        more = f" ({len(bad)} such values)" if len(bad) > 1 else ""
        raise InputError(f"{where}: {kind} {at}{more}: remove or replace {'them' if more else 'it'}")

    def _part(self, start: int, stop: int) -> Any:
        """Return the rows start … stop − 1 as a view: no value is copied."""
        from scipy import sparse

        X, bounds = self.X, self.X.indptr[start : stop + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        part = sparse.csr_matrix((stop - start, self.p))
        part.data, part.indices, part.indptr = X.data[first:last], X.indices[first:last], bounds - bounds[0]
        return part

    def _gather(self, index: Index) -> NDArray:
        return np.asarray(self.X[index].toarray())

    def _gather_slice(self, start: int, stop: int) -> NDArray:
        return np.asarray(self._part(start, stop).toarray())

    def _fitting(self, size: int) -> int:
        return max(1, min(size, DENSE_BLOCK // self.p))

    def _raw_moments(self, diagonal: bool) -> Moments:
        """Return the moments of all values, zeros included; means and variances from the stored ones."""
        X, n = self.X, self.n
        mean = np.asarray(X.sum(axis=0)).ravel() / n
        count = np.bincount(X.indices, minlength=self.p)
        squares = np.bincount(X.indices, np.square(X.data - mean[X.indices]), self.p)
        variance: Array = (squares + (n - count) * mean**2) / n
        if diagonal:
            return Moments(n, mean, variance)
        if self.p <= WIDE and (mean**2 > CANCELS * variance).any():
            return streamed_moments(self._raw_blocks(self._fitting(n)))
        C = np.asarray((X.T @ X).toarray()) / n - np.outer(mean, mean)
        np.fill_diagonal(C, variance)
        return Moments(n, mean, C)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        return parts_of(range(self.n), BLOCK)

    def _times(self, W: Array) -> Array:
        gain = self._gain()[:, None]
        scaled = np.ascontiguousarray(gain * W)
        shift = self._data_mean @ scaled

        def part(bounds: tuple[int, int]) -> tuple[Array, Array]:
            rows = self._part(*bounds)
            y = np.asarray(rows @ scaled)
            y -= shift
            return np.asarray(rows.T @ y), y.sum(0)

        total, sums = np.zeros(W.shape), np.zeros(W.shape[1])
        for moved, found in mapped(part, self._blocks()):
            total += moved
            sums += found
        total -= np.outer(self._data_mean, sums)
        return gain * total / self.n

    def _iterated_axes(self, k: int) -> Axes:
        with ThreadPoolExecutor(available_threads()) as pool:
            found = by_vectors(self._vector_product(pool), self._times, self.p, k)
        if found is None:
            return super()._iterated_axes(k)
        (pairs, further), total = found, float(self.covariance()[1].trace())
        values = np.maximum(np.concatenate([pairs.values, further.values]), 0.0)
        vectors = np.hstack([self._remembered(pairs, k), signed_axes(further.vectors)])
        return Axes(values, vectors, total, False, pairs.error)

    def _vector_product(self, pool: ThreadPoolExecutor) -> Callable[[Array], Array]:
        """Return v (p,) ↦ Cv (p,) by the threads of a pool; its bits do not depend on their number."""
        gain, mean = self._gain(), self._data_mean
        blocks = [self._part(*bounds) for bounds in parts_of(range(self.n), -(-self.n // VECTOR_BLOCKS))]

        def part(rows: Any, scaled: Array, shift: float) -> tuple[Array, float]:
            y = np.asarray(rows @ scaled) - shift
            return np.asarray(rows.T @ y), float(y.sum())

        def product(v: Array) -> Array:
            scaled = gain * v
            shift = float(mean @ scaled)
            found = list(pool.map(lambda rows: part(rows, scaled, shift), blocks))
            total = sum(moved for moved, _ in found) - mean * sum(size for _, size in found)
            return np.asarray(gain * total / self.n)

        return product

    def _gram(self) -> Array:
        gain = self._gain()
        scaled = self.X.multiply(gain).tocsr()
        mean = self._data_mean * gain
        G, cross = np.asarray((scaled @ scaled.T).toarray()), scaled @ mean
        G -= cross[:, None] + cross - mean @ mean
        return (G + G.T) / (2 * self.n)

    def _back_projected(self, U: Array) -> Array:
        V = self._gain()[:, None] * (self.X.T @ U - np.outer(self._data_mean, U.sum(0)))
        return V / np.maximum(np.linalg.norm(V, axis=0), np.finfo(np.float64).tiny)

    def _map(self, B: NDArray) -> tuple[Array, Array]:
        """Return A (p, k) and s (k,) with xB = raw·A − s."""
        A = B.astype(np.float64) if self.whitening is None else self.whitening @ B.astype(np.float64)
        A = np.ascontiguousarray(self._gain()[:, None] * A)
        return A, self.mean @ A

    def projections(self, B: NDArray, size: int = BLOCK) -> Iterator[NDArray]:
        A, shift = self._map(B)

        def part(bounds: tuple[int, int]) -> NDArray:
            return np.asarray(self._part(*bounds) @ A - shift).astype(B.dtype)

        yield from mapped(part, parts_of(range(self.n), max(size, 8192)))

    def centred_projections(self, W: Array) -> Iterator[Array]:
        A = np.ascontiguousarray(self._gain()[:, None] * W)
        yield from mapped(
            lambda bounds: np.asarray(self._part(*bounds) @ A) - self._data_mean @ A, self._blocks()
        )

    def projected(self, index: Index, B: NDArray) -> NDArray:
        A, shift = self._map(B)
        return np.asarray(self.X[index] @ A - shift).astype(np.result_type(np.float32, B.dtype))

    def raw_projections(self, A: Array, shift: Array, size: int = BLOCK) -> Iterator[Array]:
        for start, stop in parts_of(range(self.n), size):
            yield np.asarray(self._part(start, stop) @ A) - shift
