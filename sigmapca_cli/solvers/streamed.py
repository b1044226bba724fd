"""The same as `fourth`, for more components than a tensor of fourth cumulants is worth: always through the rows.

A gradient takes 2·n·k² multiplications, as does the product of the Hessian with one direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.fourth import Point
from sigmapca_cli.solvers.jacobian import pack, unpack
from sigmapca_cli.solvers.parallel import fitting, spread, total

Array = np.ndarray


@dataclass(frozen=True)
class Streamed:
    """Centred rows Y (n, k) with second moments C (k, k)."""

    Y: Array
    C: Array

    @classmethod
    def of(cls, Y: Array, count: int | None = None) -> Streamed:
        """All rows, or one from each of `count` equal stretches, the same ones every time."""
        if count is not None and count < len(Y):
            Y = Y[spread(len(Y), count)]
        (C,) = total(lambda rows: (rows.T @ rows,), Y, fitting(Y.shape[1]))
        return cls(Y, C / len(Y))

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.Y)

    def at(self, R: Array) -> Point:
        """Second moments and the cumulants of the gradient at R: as `Fourth.at`."""
        C = R.T @ self.C @ R
        sigma = np.sqrt(np.diag(C))
        M = np.ascontiguousarray(R / sigma, self.Y.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows @ M
            return (z.T @ (z * z * z),)

        (third,) = total(part, self.Y, fitting(len(R)))
        cross = third / len(self.Y) * np.outer(sigma, sigma**3) - 3 * C * np.diag(C)
        return Point(R, C, cross)

    def product(self, point: Point, G: Array, s: Array, lam: float) -> Callable[[Array], Array]:
        """θ ↦ Hθ on pairs i < j, H the Hessian of F at the point: `contrast.blocks`, without the blocks."""
        C, k = point.C, len(point.R)
        sigma, symmetric = point.sigma, (G + G.T) / 2
        M = np.ascontiguousarray(point.R / sigma, self.Y.dtype)

        def times(theta: Array) -> Array:
            A = unpack(theta, k).T
            moves = np.ascontiguousarray(sigma[:, None] * A, self.Y.dtype)

            def part(rows: Array) -> tuple[Array, ...]:
                z = rows @ M
                return (z.T @ (z * z * (z @ moves)),)

            (fourth,) = total(part, self.Y, fitting(k))
            CA = C @ A
            own = np.diag(CA)  # E[y_j d_j] for d = yA
            shared = fourth / len(self.Y) * np.outer(sigma, sigma**2) - np.diag(C) * CA - 2 * C * own
            X = 4 * CA * np.diag(C) + 8 * C * own + 12 * lam * s * shared - symmetric @ A
            return pack(X.T - X)

        return times
