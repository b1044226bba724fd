"""Checks of the input of both solvers (rows, a, start rotation), and the order of the components of their answer."""

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
