"""The same as `fourth` for more components, where the tensor of fourth cumulants would be too large.

Each gradient, and each product of the Hessian with one direction, is a pass over the rows of 2·n·k² multiplications.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.fourth_moments.fourth import Point
from sigmapca_cli.solvers.newton.jacobian import pack, unpack
from sigmapca_cli.solvers.rows.parallel import means, rows_per_block, spaced
from sigmapca_cli.solvers.rows.weights import for_fourth_moments, scaled_to_mean_one, second_moments, split
from sigmapca_cli.system.row_shards import place

Array = np.ndarray


@dataclass(frozen=True)
class Streamed:
    """Centred rows Y (n, k) with second moments C (k, k); of a rank, Y holds its share of the n rows.

    Of rows with weights, C has the weights, and Y is w^¼ times the rows: only fourth moments are made of it.
    """

    Y: Array
    C: Array
    n: int

    @classmethod
    def of(cls, Y: Array, count: int | None = None, k: int | None = None) -> Streamed:
        """Take all rows, or one from each of `count` equal stretches; the same rows on every call.

        k: number of components, where weights of the rows are a further column of Y.
        """
        where = place(Y)
        if count is not None and count < where[1]:
            Y = spaced(Y, count, where)
        k = k or Y.shape[1]
        Y = scaled_to_mean_one(Y, k)
        n, (C,) = means(lambda rows: (second_moments(*split(rows, k)),), Y, rows_per_block(k))
        return cls(for_fourth_moments(*split(Y, k)), C, n)

    def at(self, R: Array) -> Point:
        """Return the second moments at R and the cumulants that the gradient needs, as `Fourth.at`."""
        C = R.T @ self.C @ R
        sigma = np.sqrt(np.diag(C))
        M = np.ascontiguousarray(R / sigma, self.Y.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows @ M
            return (z.T @ (z * z * z),)

        _, (third,) = means(part, self.Y, rows_per_block(len(R)))
        cross = third * np.outer(sigma, sigma**3) - 3 * C * np.diag(C)
        return Point(R, C, cross)

    def product(self, point: Point, G: Array, s: Array, lam: float) -> Callable[[Array], Array]:
        """Return the function θ ↦ Hθ on pairs i < j, H the Hessian of F at the point, without the blocks of
        `contrast.blocks`."""
        C, k = point.C, len(point.R)
        sigma, symmetric = point.sigma, (G + G.T) / 2
        M = np.ascontiguousarray(point.R / sigma, self.Y.dtype)

        def times(theta: Array) -> Array:
            A = unpack(theta, k).T
            moves = np.ascontiguousarray(sigma[:, None] * A, self.Y.dtype)

            def part(rows: Array) -> tuple[Array, ...]:
                z = rows @ M
                return (z.T @ (z * z * (z @ moves)),)

            _, (fourth,) = means(part, self.Y, rows_per_block(k))
            CA = C @ A
            own = np.diag(CA)  # E[y_j d_j] for d = yA
            shared = fourth * np.outer(sigma, sigma**2) - np.diag(C) * CA - 2 * C * own
            X = 4 * CA * np.diag(C) + 8 * C * own + 12 * lam * s * shared - symmetric @ A
            return pack(X.T - X)

        return times
