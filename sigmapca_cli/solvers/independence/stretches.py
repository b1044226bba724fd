"""Errors where rows depend on their neighbours: sums over stretches of rows, as wide as the spread asks for.

Rows in time have spectra S_i(f) in place of variances. Then the derivative of C for component i is the component itself
filtered by 1/S_i(f), in the place of y_i/σ_i² (Pham & Garat 1997). Everything else is as for other rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from sigmapca_cli.data.row_order import checked_pieces
from sigmapca_cli.solvers.independence.contrast import Point
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.newton.jacobian import pack
from sigmapca_cli.solvers.rows.stretches import GROUPS, variance, widened
from sigmapca_cli.system.row_shards import gathered

Array = np.ndarray

NULL_K = (2, 4, 8, 16, 32, 64)
NULL_EXCESS = (4.5, 10.0, 14.0, 22.0, 35.0, 55.0)
"""Largest `apart` of k Gaussian components of one spectrum at the minimum of C₁: its quantile .975 is
1 + this/√(bands − 1). By simulation, white rows and rows of φ = .8: of 1,000
rows up to k = 16, of 3,200 rows up to k = 8; the rest continues these."""


def groups_of(n: int) -> int:
    """Return the number of stretches of n rows to begin with."""
    return int(np.clip(n // 20, 2, GROUPS))


def filtered(Y: Array, S: Array, pieces: Sequence[int]) -> Array:
    """Return centred rows in time Y (n, k) filtered by 1/S_i(f), S (bands, k, k), each piece by itself, (n, k)."""
    power = np.einsum("fii->fi", S)
    centres = (np.arange(len(S)) + 0.5) / len(S) / 2  # in cycles a row
    out = np.empty(Y.shape)
    for first, last in itertools.pairwise(checked_pieces(pieces, len(Y))):
        frequencies = np.fft.rfftfreq(last - first)
        gain = np.column_stack([np.interp(frequencies, centres, 1 / column) for column in power.T])
        out[first:last] = np.fft.irfft(np.fft.rfft(Y[first:last], axis=0) * gain, last - first, axis=0)
    return out


def spread_of_stretches(
    rows: Rows, M: Array, point: Point, influence: Callable[[Array], Array], u: Array, coupled: bool
) -> tuple[Array, Array, int]:
    """Return the variance of the gradient of all pairs (or its diagonal), that of the influences, and the stretches.

    u (n, k): the linear part of the derivatives, z/σ or the filtered rows. Rows may have weights.
    """
    k, own = rows.k, np.diag(point.weighted)
    slopes, shapes = [], []
    count = max(1, round(groups_of(rows.n) * len(rows.held) / rows.n))
    for held, linear in zip(np.array_split(rows.held, count), np.array_split(u, count), strict=True):
        z = (held[:, :k].astype(np.float64, copy=False) - rows.mean) @ M
        g = linear + point.tau * (z * own - point.psi(z)) / point.sigma
        w = held[:, k:].astype(np.float64, copy=False) if held.shape[1] > k else 1.0
        G = (z * point.sigma * w).T @ g
        mean = (z * point.sigma * w).sum(0)
        slopes.append((G, mean, (w * g).sum(0)))
        shapes.append((w * influence(z)).sum(0))
    parts = [part for some in gathered(slopes) for part in some]
    centre = (
        sum(part[2] for part in parts) / rows.mass
    )  # g is centred, because the mean of the rows is estimated
    each = np.array([pack((G := part[0] - np.outer(part[1], centre)).T - G) for part in parts]) / rows.mass
    shape = np.array([part for some in gathered(shapes) for part in some]) / rows.mass
    return widest(each, shape, coupled)


def widest(slopes: Array, shapes: Array, coupled: bool) -> tuple[Array, Array, int]:
    """Return the spread of sums over stretches (m, …), joined in pairs until it grows no more, and their number."""
    slopes, shapes = widened((slopes, shapes), lambda sums: sums)
    more, m = len(slopes) / max(len(slopes) - 1, 1), len(slopes)
    moved = shapes - shapes.mean(0)
    if not coupled:
        return variance(slopes), moved.T @ moved * more, m
    turned = slopes - slopes.mean(0)
    return turned.T @ turned * more, moved.T @ moved * more, m


def apart(S: Array, n: int) -> Array:
    """Return how far the shapes of two spectra differ, (k, k): 1 on average for equal ones at fixed axes, 0 without.

    Each log spectrum of a band has the variance 2·bands/n, so that of two differs by 4·bands/n.
    """
    bands = len(S)
    if bands < 2:
        return np.zeros(S.shape[1:])
    logs = np.log(np.einsum("fii->fi", S))
    difference = logs[:, :, None] - logs[:, None, :]
    return np.asarray(np.square(difference - difference.mean(0)).sum(0) * n / bands / 4 / (bands - 1))


def apart_bound(k: int, bands: int) -> float:
    """Return what `apart` has to exceed for two of k components."""
    if bands < 2:
        return np.inf
    excess = np.exp(np.interp(np.log(k), np.log(NULL_K), np.log(NULL_EXCESS)))
    return float(1 + excess / np.sqrt(bands - 1))
