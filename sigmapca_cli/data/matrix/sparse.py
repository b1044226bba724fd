"""Sparse rows: a matrix in compressed rows (CSR) that is centred and scaled in its products, and never made dense.

Only the rows of a batch, or of a block, are written out with their zeros, where a method asks for rows.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import Moments, refuse_lost, signed_axes, streamed_moments
from sigmapca_cli.data.moments.centred_rows import stretches
from sigmapca_cli.data.moments.eigenpairs import by_vectors
from sigmapca_cli.data.moments.implicit import WIDE, Axes
from sigmapca_cli.data.readers.table import in_array
from sigmapca_cli.data.source import Index, Source
from sigmapca_cli.data.standardisation import Standardisation, need_two_samples
from sigmapca_cli.data.subsample import RowSample
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import available_threads, mapped

Array = NDArray[np.float64]

PRODUCT_ROWS = 1 << 16
"""Rows of a block of a product."""
LEAST_BLOCK = 8192
"""Rows of a block of a projection at least."""
VECTOR_BLOCKS = 8
"""Number of blocks of rows of a product with one vector, which threads share."""
DENSE_BLOCK = 1 << 20
"""Entries of a block of rows with their zeros."""
CANCELS = 1e6
"""mean²/variance beyond which E[x²] − mean² would lose more digits than are asked for."""


class SparseSource(Source):
    """Rows of a matrix of compressed rows (n, p)."""

    sparse = True

    def __init__(
        self,
        name: str,
        X: Any,
        where: object,
        options: Standardisation,
        part: slice | None = None,
        place: Callable[[int, int], str] | None = None,
        least: int = 2,
    ) -> None:
        """`place`: (row, column) to words that locate the value in its file; `least`: smallest number of rows."""
        self.name, self.X = name, X if part is None else X[part]
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
        at = (place or in_array)(row, column)
        kind = "NaN" if np.isnan(self.X.data[bad[0]]) else "infinity"
        more = f" ({len(bad)} such values)" if len(bad) > 1 else ""
        raise InputError(f"{where}: {kind} {at}{more}: remove or replace {'them' if more else 'it'}")

    def _gather(self, rows: Index | slice) -> NDArray:
        return np.asarray((part_of(self.X, rows) if isinstance(rows, slice) else self.X[rows]).toarray())

    def _fitting(self, size: int) -> int:
        return max(1, min(size, DENSE_BLOCK // self.p))

    def _raw_moments(self, diagonal: bool) -> Moments:
        """Return the moments of all values, zeros included; means and variances from the stored ones."""
        X, n = self.X, self.n
        mean = np.asarray(X.sum(axis=0)).ravel() / n
        count = np.bincount(X.indices, minlength=self.p)
        with np.errstate(over="ignore", invalid="ignore"):  # `standardisation` refuses them in words
            squares = np.bincount(X.indices, np.square(X.data - mean[X.indices]), self.p)
            variance: Array = (squares + (n - count) * mean**2) / n
        refuse_lost(X, variance)
        if diagonal:
            return Moments(n, mean, variance)
        if self.p <= WIDE and (mean**2 > CANCELS * variance).any():
            return streamed_moments(map(self._gather, stretches(row_shards.own(n), self._fitting(n))))
        C = np.asarray((X.T @ X).toarray()) / n - np.outer(mean, mean)
        np.fill_diagonal(C, variance)
        return Moments(n, mean, C)

    def _products(self) -> SparseRows:
        return SparseRows(self.X, self._data_mean, self._gain())

    def _iterated_axes(self, k: int) -> Axes:
        with ThreadPoolExecutor(available_threads()) as pool:
            found = by_vectors(self._products().by_vector(pool), self._times, self.p, k)
        if found is None:
            return super()._iterated_axes(k)
        (pairs, further), total = found, float(self.covariance()[1].trace())
        values = np.maximum(np.concatenate([pairs.values, further.values]), 0.0)
        vectors = np.hstack([self._remembered(pairs, k), signed_axes(further.vectors)])
        return Axes(values, vectors, total, False, pairs.error)

    def project(
        self,
        B: NDArray,
        rows: Index | RowSample | None = None,
        *,
        exact: bool = False,
        size: int = PRODUCT_ROWS,
    ) -> Iterator[NDArray]:
        """As `Source.project`, without a row that is written out; sums are float64 before they get the type of B."""
        A, size = B.astype(np.float64), max(size, LEAST_BLOCK)
        if exact:
            yield from self._products().projections(A)
        else:
            A = A if self.whitening is None else self.whitening @ A
            A = np.ascontiguousarray(self._gain()[:, None] * A)
            shift = self.mean @ A
            chosen = isinstance(rows, np.ndarray)
            found = [np.asarray(self.X[rows] @ A - shift)] if chosen else affine(self.X, A, shift, size)
            yield from (z.astype(B.dtype) for z in found)


@dataclass(frozen=True)
class SparseRows:
    """Products with the rows x̄ = (x − mean) ⊙ gain of a matrix X (n, p) of compressed rows (`centred.Products`)."""

    X: Any
    mean: Array
    gain: Array

    def times(self, W: Array) -> Array:
        """Return x̄ᵀ(x̄W) (p, b)."""
        scaled = np.ascontiguousarray(self.gain[:, None] * W)
        shift = self.mean @ scaled

        def part(rows: slice) -> tuple[Array, Array]:
            found = part_of(self.X, rows)
            y = np.asarray(found @ scaled)
            y -= shift
            return np.asarray(found.T @ y), y.sum(0)

        total, sums = np.zeros(W.shape), np.zeros(W.shape[1])
        for moved, found in mapped(part, stretches(range(self.X.shape[0]), PRODUCT_ROWS)):
            total += moved
            sums += found
        total -= np.outer(self.mean, sums)
        return self.gain[:, None] * total

    def projections(self, W: Array) -> Iterator[Array]:
        """Yield blocks x̄W (m, b) of all rows in order."""
        A = np.ascontiguousarray(self.gain[:, None] * W)
        return affine(self.X, A, self.mean @ A, PRODUCT_ROWS)

    def gram(self) -> Array:
        """Return x̄x̄ᵀ (n, n)."""
        scaled, mean = self.X.multiply(self.gain).tocsr(), self.mean * self.gain
        G, cross = np.asarray((scaled @ scaled.T).toarray()), scaled @ mean
        G -= cross[:, None] + cross - mean @ mean
        return (G + G.T) / 2

    def transposed(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m) for U (n, m)."""
        return np.asarray(self.gain[:, None] * (self.X.T @ U - np.outer(self.mean, U.sum(0))))

    def by_vector(self, pool: ThreadPoolExecutor) -> Callable[[Array], Array]:
        """Return v (p,) ↦ x̄ᵀ(x̄v)/n (p,) by the threads of a pool; its bits do not depend on their number."""
        n = self.X.shape[0]
        parts = [part_of(self.X, rows) for rows in stretches(range(n), -(-n // VECTOR_BLOCKS))]

        def part(rows: Any, scaled: Array, shift: float) -> tuple[Array, float]:
            y = np.asarray(rows @ scaled) - shift
            return np.asarray(rows.T @ y), float(y.sum())

        def product(v: Array) -> Array:
            scaled = self.gain * v
            shift = float(self.mean @ scaled)
            found = list(pool.map(lambda rows: part(rows, scaled, shift), parts))
            total = sum(moved for moved, _ in found) - self.mean * sum(size for _, size in found)
            return np.asarray(self.gain * total / n)

        return product


def affine(X: Any, A: Array, shift: Array, size: int) -> Iterator[Array]:
    """Yield X @ A − shift in blocks of `size` rows."""
    return mapped(lambda rows: np.asarray(part_of(X, rows) @ A - shift), stretches(range(X.shape[0]), size))


def part_of(X: Any, rows: slice) -> Any:
    """Return some rows of a matrix of compressed rows as a view: no value is copied."""
    from scipy import sparse

    bounds = X.indptr[rows.start : rows.stop + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    part = sparse.csr_matrix((rows.stop - rows.start, X.shape[1]))
    part.data, part.indices, part.indptr = X.data[first:last], X.indices[first:last], bounds - bounds[0]
    return part
