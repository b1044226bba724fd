"""Weights of rows, held as one more column beside the k columns of the rows: sums over rows multiply by them."""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.rows.parallel import mean_of, means
from sigmapca_cli.system.errors import InputError

Array = np.ndarray


def checked_weights(weights: Array, n: int) -> Array:
    """Return the weights (n,), float64. Raise InputError if they are not one finite number ≥ 0 for each row."""
    weights = np.asarray(weights, np.float64)
    if weights.shape != (n,):
        raise InputError(f"weights have shape {weights.shape}; give one weight for each of the {n} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise InputError("weights must be finite numbers ≥ 0, not all of them 0; check the weights")
    return weights


def held(rows: Array, weights: Array | None) -> Array:
    """Return rows (n, k) with the column of their weights (n,), contiguous; the rows themselves without weights."""
    if weights is None:
        return rows
    return np.ascontiguousarray(np.column_stack([rows, checked_weights(weights, len(rows))]))


def weighted_mean(rows: Array, k: int) -> Array:
    """Return Σwy/Σw (k,), float64, over the rows of all ranks; the mean without weights."""
    if rows.shape[1] == k:
        return mean_of(rows)

    def part(block: Array) -> tuple[Array, ...]:
        y, weights = split(block, k)
        return times(y, weights).sum(0, dtype=np.float64), block[:, k:].sum(0, dtype=np.float64)

    first, mass = means(part, rows)[1]
    return np.asarray(first / mass)


def scaled_to_mean_one(rows: Array, k: int) -> Array:
    """Return rows whose weights, if they have any, are divided by their mean over all ranks."""
    if rows.shape[1] == k:
        return rows
    rows = rows.copy()
    rows[:, k:] /= mean_of(rows[:, k:])
    return rows


def split(block: Array, k: int) -> tuple[Array, Array | None]:
    """Return the rows (m, k) of a block, and their weights (m, 1), None where all are 1."""
    return (block, None) if block.shape[1] == k else (block[:, :k], block[:, k:])


def second_moments(y: Array, weights: Array | None) -> Array:
    """Return Σwyyᵀ (k, k) over rows y (m, k)."""
    return np.asarray(y.T @ times(y, weights))


def for_fourth_moments(y: Array, weights: Array | None) -> Array:
    """Return rows w^¼y (m, k), whose fourth moments are the weighted ones of y."""
    return y if weights is None else y * np.sqrt(np.sqrt(weights))


def times(values: Array, weights: Array | None) -> Array:
    """Return the values (m, …) of rows, each times its weight."""
    return values if weights is None else values * weights
