"""The rows of a source projected on its leading axes: what every solver works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.data.moments.accumulate import check_k
from sigmapca_cli.data.moments.covariance import axes_of
from sigmapca_cli.data.moments.implicit import Covariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.solvers.rows.clip import clipped
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import agreed, own, own_of

Array = np.ndarray
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
