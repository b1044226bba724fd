"""The rows of a source projected on its leading axes: what every solver works on. Rows of large norm may be clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.data.moments.accumulate import check_k
from sigmapca_cli.data.moments.covariance import axes_by_products, axes_of
from sigmapca_cli.data.moments.implicit import Covariance, ImplicitCovariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import added, agreed, gathered, own, own_of, sharing

Array = np.ndarray

ROWS_READ = 8192
"""Number of rows read at once."""
CLIPPED_ENTRIES = 1 << 23
"""Number of entries of the clipped rows of many features that are read at once."""


@dataclass(frozen=True)
class Clipped:
    """factor (n,) that multiplies each centred row; mean (p,) and covariance C (p, p) of the clipped rows.

    Where ranks hold shares of the rows, factor is that of this rank's rows, the first of which has number `first`.
    """

    factor: Array
    mean: Array
    C: Covariance
    count: int
    first: int = 0


def clipped(source: Source, quantile: float) -> Clipped:
    """Return the factors and moments of rows clipped at this quantile of their norms.

    One pass computes the norms of the centred rows; the moments of all rows are then corrected for the clipped ones.
    With u = x − mean: mean′ = mean + E[(f − 1)u], C′ = C + E[(f² − 1)uuᵀ] − (mean′ − mean)(mean′ − mean)ᵀ.
    """
    mean, C = source.covariance()
    norm = np.concatenate(
        [np.sqrt(np.square(block - mean, dtype=np.float64).sum(1)) for block in source.blocks(ROWS_READ)]
    )
    q = quantile_of(norm, quantile, source.n)
    factor = np.minimum(1.0, q / np.maximum(norm, np.finfo(np.float64).tiny))
    first = own(source.n).start
    drawn = first + np.flatnonzero(factor < 1)
    count = sum(gathered(len(drawn)))
    if isinstance(C, ImplicitCovariance):
        return Clipped(factor, *clipped_products(source, mean, C, factor, drawn), count, first)
    shift, change = np.zeros(source.p), np.zeros_like(C)
    for part in np.array_split(drawn, max(1, -(-len(drawn) // ROWS_READ))):
        u, f = source.take(part).astype(np.float64) - mean, factor[part - first, None]
        shift += ((f - 1) * u).sum(0)
        change += ((f * f - 1) * u).T @ u
    shift, change = added((shift, change), patient=True)
    shift /= source.n
    C = C + change / source.n - np.outer(shift, shift)
    return Clipped(factor, mean + shift, (C + C.T) / 2, count, first)


def quantile_of(norm: Array, quantile: float, n: int) -> float:
    """Return the quantile of n norms, of which each rank has some; ranks exchange only those near and above it."""
    if sharing() is None:
        return float(np.quantile(norm, quantile))
    position = quantile * (n - 1)
    most = n - int(position)
    top = np.sort(np.concatenate(gathered(np.sort(norm)[-most:])))[-most:]
    return float(top[0] + (position - int(position)) * (top[min(1, most - 1)] - top[0]))


def clipped_products(
    source: Source, mean: Array, C: ImplicitCovariance, factor: Array, drawn: Array
) -> tuple[Array, ImplicitCovariance]:
    """Return mean′ and the products of C′, as `clipped` has them; the clipped rows are read again for each product."""
    parts = np.array_split(drawn, max(1, -(-len(drawn) * source.p // CLIPPED_ENTRIES)))
    first = own(source.n).start
    shift, change = np.zeros(source.p), np.zeros(source.p)
    for part in parts:
        u, f = source.take(part).astype(np.float64) - mean, factor[part - first, None]
        shift += ((f - 1) * u).sum(0) / source.n
        change += ((f * f - 1) * u * u).sum(0) / source.n
    shift, change = added((shift, change), patient=True)
    diagonal = C.diagonal() + change

    def product(W: Array) -> Array:
        result = np.zeros(W.shape)
        for part in parts:
            u, f = source.take(part).astype(np.float64) - mean, factor[part - first, None]
            result += u.T @ ((f * f - 1) * (u @ W)) / source.n
        return C @ W - np.outer(shift, shift @ W) + added((result,), patient=True)[0]

    diagonal -= shift**2
    return mean + shift, ImplicitCovariance(
        product, diagonal, lambda k: axes_by_products(product, diagonal, min(k, source.n))
    )


Facts = dict[str, Any]
"""What a solver says of how it found its answer."""

LARGEST_ROWS = 2_000_000
"""Largest number of rows that are projected: 256 MB at k = 32."""


def project(source: Source, k: int, clip: float | None = None) -> tuple[Array, Array, Covariance, list[str]]:
    """Return P (p, k) leading eigenvectors, Y = (x − mean)P (n, k) float32, C (p, p), and sentences for the user.

    Where ranks hold shares of the rows, Y holds those of this rank.

    clip: P, the mean and Y are those of rows clipped at this quantile of their norms; C is that of the unclipped
    rows. Raise InputError if k is out of range or above the rank.
    """
    mean, C = source.covariance()
    if not 1 <= k <= len(C):
        raise InputError(f"k={k} components of {len(C)} features; choose k between 1 and {len(C)}")
    drawn = None if clip is None else clipped(source, clip)
    axes = source.leading_axes(k) if drawn is None else axes_of(drawn.C, k)
    check_k(k, source.n, source.p, axes.rank)
    P = agreed(np.ascontiguousarray(axes.up_to(k)))
    single, shift = P.astype(np.float32), (np.asarray(mean) @ P).astype(np.float32)
    notes = []
    if source.n <= LARGEST_ROWS:
        mine = own(source.n)
        index = np.arange(mine.start, mine.stop)
        Y = np.concatenate([y - shift for y in source.project(single)])
    else:
        index = own_of(one_per_stretch(source.n, LARGEST_ROWS), source.n)
        parts = (source.project(single, part) for part in np.array_split(index, 500))
        Y = np.concatenate([y - shift for blocks in parts for y in blocks])
        notes.append(
            f"solved on {LARGEST_ROWS} of {source.n} rows, spaced evenly; covariance and sigma are those of all rows"
        )
    if drawn is not None:
        Y = (Y * drawn.factor[index - drawn.first, None] - (drawn.mean - mean) @ P).astype(Y.dtype)
        notes.append(
            f"{drawn.count} of {source.n} rows were clipped to a smaller norm (solver.clip={clip:g})"
        )
    return P, Y, C, notes


def nearest_rotation(P: Array, W: Array) -> Array:
    """Return the orthogonal R (k, k) for which P·R is nearest to the filters W (p, k), each scaled to unit norm."""
    W = W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(np.float64).tiny)
    return nearest_orthonormal(P.T @ W)
