"""What every solver is given: rows, their weights, a and a start rotation; and the order of its components.

Weights are one more column beside the k columns of the rows: sums over rows multiply by them.
"""

from __future__ import annotations

import numpy as np

from sigmapca_cli.data.moments.accumulate import rank_of
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.methods.config import SCALED
from sigmapca_cli.solvers.rows.parallel import count, mean_of, means
from sigmapca_cli.system.errors import InputError

Array = np.ndarray


def checked_rows(Y: Array, k: int | None, solver: str = "newton") -> Array:
    """Return the first k columns of Y, contiguous. Raise InputError if they cannot be used as components."""
    if Y.ndim != 2 or Y.dtype not in (np.float32, np.float64):
        raise InputError(f"solver {solver} needs components as a float matrix (rows, k)")
    Y = Y[:, :k]
    n, width = count(Y), Y.shape[1]
    if n <= width:
        raise InputError(f"solver {solver} needs more rows than components: {n} rows, k={width}; lower k")
    if n * width <= 1_000_000:
        Y = Y.astype(np.float64)  # costs little at this size, and is exact
    centre = mean_of(Y[: 1 << 12])

    def part(rows: Array) -> tuple[Array, ...]:
        moved = rows - centre
        return moved.sum(0), np.square(moved).sum(0)

    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = means(part, Y)[1]
        std = np.sqrt(np.maximum(square - mean**2, 0))
    if not np.isfinite(std).all():
        raise InputError("the components contain NaN or infinite values; check the data")
    rank = rank_of(np.square(std))
    if rank < width:
        raise InputError(f"only {rank} of {width} components have any variance; use k={rank} or fewer")
    return np.ascontiguousarray(Y)


def checked_a(a: float | str | Array, nonlinearity: str, derivative: str) -> float | str | Array:
    """Return a, or 1 for "auto" if h has no scale. Raise InputError if a is not a valid scale of h."""
    if isinstance(a, str):
        if a != "auto":
            raise InputError(f"a={a}: must be a positive number or auto")
        if (nonlinearity, derivative) == ("scaled_tanh", "true"):
            return a
        # for other scores there is no rule that chooses a
        if nonlinearity in SCALED:
            raise InputError(
                f"a=auto needs nonlinearity=scaled_tanh with derivative=true; give a number for {nonlinearity}"
            )
        return 1.0
    if not np.all(np.asarray(a, float) > 0):
        raise InputError(f"a={a}: must be positive")
    return a


def checked_start(start: Array | None, k: int) -> Array:
    """Return the orthogonal matrix to start from, the identity for None. Raise InputError for another matrix."""
    if start is None:
        return np.eye(k)
    start = np.asarray(start, np.float64)
    if start.shape != (k, k) or np.abs(start.T @ start - np.eye(k)).max() > 1e-4:
        raise InputError(f"start must be an orthogonal matrix of shape ({k}, {k})")
    return nearest_orthonormal(start)


def in_order(R: Array, C: Array) -> tuple[Array, Array]:
    """Return R, columns by decreasing variance, largest entry of each positive, and the order of its columns."""
    order = np.argsort(-np.einsum("lj,lm,mj->j", R, C, R), kind="stable")
    R = R[:, order]
    return R * np.sign(R[np.abs(R).argmax(0), np.arange(len(R))]), order


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
