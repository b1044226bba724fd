"""The Hessian of C_τ at a rotation: as a product with a direction, its diagonal, and whole for few components.

Let a be the change of y_i in the other components, y_i ← y_i + y·a. With κ = E[y y_i]/σ_i², p₁ = E[y G₁′]/σ_i,
p₂ = E[y G₂′]/σ_i, w = E[y ψ]/σ_i, r = E[y ψ′z_i]/σ_i, c = E[ψz_i], t = E[ψ′z_i²] and d = p − κE[G′z_i], J(z_i) has the
second derivative aᵀBa with

    B = 2k₁ d₁d₁ᵀ + 2k₂ d₂d₂ᵀ + E[ψ′ y yᵀ]/σ_i² − rκᵀ − κrᵀ + tκκᵀ − κwᵀ − wκᵀ + c(3κκᵀ − E[yyᵀ]/σ_i²),

and log σ_i has E[yyᵀ]/σ_i² − 2κκᵀ. The second order of the rotation itself adds −(G + Gᵀ)/2 of the slopes G.
Components are not assumed to be independent: the only sums over rows are r and E[ψ′ y yᵀ], and of the latter only
products with one direction, or its diagonals, are computed unless there are few components.
"""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.fourth_moments.contrast import hessian
from sigmapca_cli.solvers.independence.contrast import K1, K2, Point
from sigmapca_cli.solvers.independence.rows import Rows, blockwise
from sigmapca_cli.solvers.newton.jacobian import pack, unpack

Array = np.ndarray

FLOOR = 0.01
"""A pair's curvature counts as at least this, so that Gaussian pairs of equal variance take no large steps."""


class Curvature:
    """θ ↦ Hθ on pairs i < j, (k(k−1)/2,), H the Hessian of C_τ at a point; the third moments are those of some rows.

    diagonal (pairs,): ∂²C/∂θ_ij²; scale (pairs,): max(|∂²C/∂θ_ij²|, FLOOR), by which a gradient becomes an angle in
    radians, whatever the unit of the rows.
    """

    def __init__(self, point: Point, rows: Rows) -> None:
        """Hold z and the weighted ψ′(z) of `rows`, side by side, (n, 2k) float64."""
        self.point, self.k, self.mass = point, rows.k, rows.mass
        k, sigma = rows.k, point.sigma
        self.held = np.empty((len(rows.held), 2 * k))
        reach, own = self._hold(rows)
        self.r = own * (sigma[:, None] / sigma)
        self.spread = np.einsum("fii->fi", point.S)
        self.kappa = point.C / np.diag(point.C)
        ratio = sigma[:, None] / sigma
        self.p1, self.p2, self.w = point.U * ratio, -point.V * ratio, point.weighted * ratio
        self.d1 = self.p1 - self.kappa * np.diag(self.p1)
        self.d2 = self.p2 - self.kappa * np.diag(self.p2)
        self.c, self.t = np.diag(self.w), np.diag(self.r)
        self.slopes = (point.slopes + point.slopes.T) / 2
        self.diagonal = self._diagonal(reach * ratio**2)
        self.scale = np.maximum(np.abs(self.diagonal), FLOOR)

    def _hold(self, rows: Rows) -> tuple[Array, Array]:
        """Fill the held rows; return E[ψ′(z_i) z_a²] and E[ψ′(z_i) z_i z_a], each (k, k) with a first."""
        k, point = self.k, self.point
        M = point.R / point.sigma
        shift = rows.mean @ M
        weighted = rows.held.shape[1] > k
        self.held[:, :k] = rows.held[:, :k]
        if weighted:
            self.held[:, k:] = rows.held[:, k:]

        def part(block: Array) -> tuple[Array, ...]:
            z = block[:, :k] @ M
            z -= shift
            prime = point.psi_prime(z)
            if weighted:
                prime *= block[:, k:]
            block[:, :k], block[:, k:] = z, prime
            return np.square(z).T @ prime, z.T @ np.multiply(prime, z, out=prime)

        reach, own = blockwise(part, self.held, k)
        return reach / self.mass, own / self.mass

    def __call__(self, theta: Array) -> Array:
        """Return Hθ (pairs,)."""
        A = unpack(theta, self.k).T
        X = self._first(A) - self.slopes @ A
        if self.point.tau:
            X -= self.point.tau * self._second(A)
        return pack(X.T - X)

    def _first(self, A: Array) -> Array:
        """Return the second derivative of Σ½ mean_f log S_ii(f), applied to the columns of A."""
        d = self.spread
        moved = self.point.S @ A
        own = np.einsum("fii->fi", moved)
        first = moved / d[:, None, :] - 2 * self.point.S * (own / d**2)[:, None, :]
        return np.asarray(first.mean(0))

    def _second(self, A: Array) -> Array:
        """Return the second derivative of ΣJ, applied to the columns of A."""
        point, sigma = self.point, self.point.sigma
        k, moves = self.k, sigma[:, None] * A

        def part(block: Array) -> tuple[Array, ...]:
            z = block[:, :k]
            turned = z @ moves
            turned *= block[:, k:]
            return (z.T @ turned,)

        (third,) = blockwise(part, self.held, k)
        T = third / self.mass * (sigma[:, None] / sigma**2)
        return T + self._rest(A, point.C @ A / sigma**2)

    def _rest(self, A: Array, moved: Array) -> Array:
        """Return what the first and second moments add to it; moved: E[yyᵀ]A/σ²."""

        def along(vectors: Array) -> Array:
            return np.asarray(np.einsum("ai,ai->i", vectors, A))

        s, r, w = along(self.kappa), along(self.r), along(self.w)
        rest = 2 * K1 * self.d1 * along(self.d1) + 2 * K2 * self.d2 * along(self.d2)
        rest += self.kappa * ((self.t + 3 * self.c) * s - r - w) - (self.r + self.w) * s
        return np.asarray(rest - self.c * moved)

    def whole(self) -> Array:
        """Return H, (k(k−1)/2, k(k−1)/2); n·k³ multiplications."""
        k, sigma, held = self.k, self.point.sigma, self.held

        def part(block: Array) -> tuple[Array, ...]:
            z = np.ascontiguousarray(block[:, :k])
            return (np.stack([z.T @ (z * block[:, k + i : k + i + 1]) for i in range(k)]),)

        (third,) = blockwise(part, held, k)
        T = third / self.mass * np.outer(sigma, sigma) / np.diag(self.point.C)[:, None, None]
        N = np.empty_like(T)
        identity = np.eye(k)
        for a in range(k):  # the same direction in all columns gives column a of every block
            A = np.repeat(identity[:, a : a + 1], k, axis=1)
            rest = self._rest(A, self.point.C @ A / np.diag(self.point.C))
            N[:, :, a] = (self._first(A) - self.slopes @ A - self.point.tau * rest).T
        return hessian(N - self.point.tau * T)

    def _diagonal(self, reach: Array) -> Array:
        """Return ∂²C/∂θ_ij² from E[ψ′(z_i) y_a²]/σ_i², (k, k)."""
        N = self._blocks_diagonal(reach)
        return pack(N + N.T)

    def _blocks_diagonal(self, reach: Array) -> Array:
        S, d, sigma = self.point.S, self.spread, self.point.sigma
        first = (d[:, :, None] / d[:, None, :] - 2 * (S / d[:, None, :]) ** 2).mean(0)
        kappa = self.kappa
        second = 2 * K1 * self.d1**2 + 2 * K2 * self.d2**2 + reach
        second += kappa * ((self.t + 3 * self.c) * kappa - 2 * self.r - 2 * self.w)
        second -= self.c * (sigma[:, None] / sigma) ** 2
        return np.asarray(first - self.point.tau * second - np.diag(self.slopes)[:, None])
