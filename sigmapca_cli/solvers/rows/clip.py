"""Clipping of rows of extreme norm: x ← x·min(1, q/‖x‖), q a quantile of the norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.data.moments.covariance import axes_by_products
from sigmapca_cli.data.moments.implicit import Covariance, ImplicitCovariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.system.row_shards import added, gathered, own, sharing

Array = np.ndarray

BLOCK = 8192
"""Number of rows read at once."""
LARGEST = 1 << 23
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
        [np.sqrt(np.square(block - mean, dtype=np.float64).sum(1)) for block in source.blocks(BLOCK)]
    )
    q = quantile_of(norm, quantile, source.n)
    factor = np.minimum(1.0, q / np.maximum(norm, np.finfo(np.float64).tiny))
    first = own(source.n).start
    drawn = first + np.flatnonzero(factor < 1)
    count = sum(gathered(len(drawn)))
    if isinstance(C, ImplicitCovariance):
        return Clipped(factor, *clipped_products(source, mean, C, factor, drawn), count, first)
    shift, change = np.zeros(source.p), np.zeros_like(C)
    for part in np.array_split(drawn, max(1, -(-len(drawn) // BLOCK))):
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
    parts = np.array_split(drawn, max(1, -(-len(drawn) * source.p // LARGEST)))
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
