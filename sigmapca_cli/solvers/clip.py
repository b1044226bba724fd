"""Clipping of rows of extreme norm: x ← x·min(1, q/‖x‖), q a quantile of the norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.sources.base import Source

Array = np.ndarray

BLOCK = 8192
"""Number of rows read at once."""


@dataclass(frozen=True)
class Clipped:
    """factor (n,) that multiplies each centred row; mean (p,) and covariance C (p, p) of the clipped rows."""

    factor: Array
    mean: Array
    C: Array

    @property
    def count(self) -> int:
        """Number of rows that are clipped, that is, whose factor is below 1."""
        return int((self.factor < 1).sum())


def clipped(source: Source, quantile: float) -> Clipped:
    """Return the factors and moments of rows clipped at this quantile of their norms.

    One pass computes the norms of the centred rows; the moments of all rows are then corrected for the clipped ones.
    With u = x − mean: mean′ = mean + E[(f − 1)u], C′ = C + E[(f² − 1)uuᵀ] − (mean′ − mean)(mean′ − mean)ᵀ.
    """
    mean, C = source.covariance()
    norm = np.concatenate(
        [np.sqrt(np.square(block - mean, dtype=np.float64).sum(1)) for block in source.blocks(BLOCK)]
    )
    q = float(np.quantile(norm, quantile))
    factor = np.minimum(1.0, q / np.maximum(norm, np.finfo(np.float64).tiny))
    shift, change = np.zeros(source.p), np.zeros_like(C)
    drawn = np.flatnonzero(factor < 1)
    for part in np.array_split(drawn, max(1, -(-len(drawn) // BLOCK))):
        u, f = source.rows(part).astype(np.float64) - mean, factor[part, None]
        shift += ((f - 1) * u).sum(0)
        change += ((f * f - 1) * u).T @ u
    shift /= source.n
    C = C + change / source.n - np.outer(shift, shift)
    return Clipped(factor, mean + shift, (C + C.T) / 2)
