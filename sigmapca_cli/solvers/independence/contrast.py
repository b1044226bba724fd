"""C_τ(R) = Σ_i log σ_i − τ·Σ_i J(z_i) over rotations R: its value, and its exact gradient and Hessian on the rows.

With components y = YR, σ_i the standard deviation of y_i and z = y/σ, J is the negentropy of z_i: C₁ is, up to a
constant, the total correlation of the components. τ = 0 is linear PCA; for equal variances it is linear ICA.

J is approximated by two bounded functions that are orthogonal, under the Gaussian, to each other and to 1, z and z²:
J = k₁ E[G₁(z)]² + k₂ (E[G₂(z)] − √½)², G₁ = z e^(−z²/2), G₂ = e^(−z²/2), k₁ = 36/(8√3 − 9), k₂ = 24/(16√3 − 27).

A small rotation A (antisymmetric) moves the components to y·expm(A). On pairs i < j the coordinate is θ_ij = A_ji, so
that y_i gains θ_ij y_j, as everywhere in these solvers. Rows in time have a spectral matrix S(f) in place of the
covariance: the first term is then Σ_i ½ mean_f log S_ii(f), and log σ_i is its case of one band.

References
----------
A. Hyvärinen (1998). New approximations of differential entropy for independent component analysis and projection
pursuit. NIPS 10.
J.-F. Cardoso (2003). Dependence, correlation and Gaussianity in independent component analysis. JMLR 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.newton.jacobian import pack

Array = np.ndarray

K1 = 36 / (8 * np.sqrt(3) - 9)
"""k₁: weight of the odd function, which sees skewness."""
K2 = 24 / (16 * np.sqrt(3) - 27)
"""k₂: weight of the even function, which sees tails."""
FLOOR = 0.05
"""Least curvature of a pair in a step of all pairs at once, so that Gaussian pairs take no large steps."""


@dataclass(frozen=True)
class Point:
    """C_τ and its first derivative at one rotation R (k, k).

    C (k, k): covariance of y = YR; S (bands, k, k): spectral matrices of y, the covariance alone for rows without an
    order; alpha (k,): E[G₁(z)]; beta (k,): E[G₂(z)] − √½; U (k, k): U_ai = E[z_a G₁′(z_i)], G₁′ = (1 − z²)e^(−z²/2);
    V (k, k): V_ai = E[z_a z_i e^(−z_i²/2)], the G₂′ of which is the negative.
    """

    R: Array
    tau: float
    C: Array
    S: Array
    alpha: Array
    beta: Array
    U: Array
    V: Array

    @property
    def sigma(self) -> Array:
        """Standard deviations of the components, (k,)."""
        return np.asarray(np.sqrt(np.diag(self.C)))

    @property
    def negentropy(self) -> Array:
        """J(z_i), (k,)."""
        return np.asarray(K1 * self.alpha**2 + K2 * self.beta**2)

    @property
    def value(self) -> float:
        """C_τ."""
        spread = np.log(np.einsum("fii->fi", self.S)).mean(0).sum() / 2
        return float(spread - self.tau * self.negentropy.sum())

    @property
    def weighted(self) -> Array:
        """W_ai = E[ψ(z_i) z_a], (k, k), where ψ = ∂J/∂z = 2k₁αG₁′ − 2k₂β z e^(−z²/2)."""
        return 2 * K1 * self.alpha * self.U - 2 * K2 * self.beta * self.V

    @property
    def slopes(self) -> Array:
        """G_ai = E[y_a g_i], (k, k): dC/dε for y_i ← y_i + ε·y_a, g_i = (z_i(1 + τE[ψz]) − τψ)/σ_i."""
        W, kappa, sigma = self.weighted, self.C / np.diag(self.C), self.sigma
        first = (self.S / np.einsum("fii->fi", self.S)[:, None, :]).mean(0)
        return np.asarray(first + self.tau * (kappa * np.diag(W) - W * (sigma[:, None] / sigma)))

    @property
    def gradient(self) -> Array:
        """∂C/∂θ_ij = G_ji − G_ij on pairs i < j, (k(k−1)/2,)."""
        G = self.slopes
        return pack(G.T - G)

    @property
    def scale(self) -> Array:
        """∂²C/∂θ_ij² of independent components, without its sign and at least FLOOR, on pairs i < j.

        (σ_i²/σ_j²)(1 + τ(E[ψz] − E[ψ′])_j) + (σ_j²/σ_i²)(1 + τ(E[ψz] − E[ψ′])_i) − 2. It needs no more sums over rows.
        """
        prime = 2 * K2 * self.beta * (np.diag(self.V) - self.beta - np.sqrt(0.5))
        prime -= 2 * K1 * self.alpha * (2 * self.alpha + np.diag(self.U))
        power, variance = np.einsum("fii->fi", self.S), np.diag(self.C)
        N = (power[:, :, None] / power[:, None, :]).mean(0) - 1
        N += self.tau * (variance[:, None] / variance) * (np.diag(self.weighted) - prime)
        return np.maximum(np.abs(pack(N + N.T)), FLOOR)

    def psi(self, z: Array) -> Array:
        """Return ψ(z) of the components, (m, k)."""
        e, q = bell(z)
        return np.asarray((2 * K1 * self.alpha * (1 - q) - 2 * K2 * self.beta * z) * e)

    def psi_prime(self, z: Array) -> Array:
        """Return ψ′(z) = (2k₁α(z³ − 3z) + 2k₂β(z² − 1))e^(−z²/2) of the components, (m, k)."""
        e, q = bell(z)
        even = q - 1
        odd = q
        odd -= 3
        odd *= z
        odd *= 2 * K1 * self.alpha
        even *= 2 * K2 * self.beta
        odd += even
        odd *= e
        return odd


@dataclass(frozen=True)
class Contrast:
    """C_τ on rows, τ ≥ 0; S (bands, k, k): spectral matrices of rows in time in place of the covariance."""

    rows: Rows
    tau: float
    S: Array | None = None

    def at(self, R: Array) -> Point:
        """Return C_τ and its slopes at the rotation R; one pass over the rows."""
        C = R.T @ self.rows.C @ R

        def part(z: Array, w: Array | None) -> tuple[Array, ...]:
            each = np.ones(len(z))
            e, q = bell(z)
            if w is not None:
                e *= w
            q *= e
            np.subtract(e, q, out=q)
            U = z.T @ q
            np.multiply(z, e, out=q)
            return each @ q, each @ e, U, z.T @ q

        alpha, beta, U, V = self.rows.means(part, R / np.sqrt(np.diag(C)))
        S = C[None] if self.S is None else R.T @ self.S @ R
        return Point(R, self.tau, C, S, alpha, beta - np.sqrt(0.5), U, V)


def bell(z: Array) -> tuple[Array, Array]:
    """Return e^(−z²/2) and z², each a new array."""
    q = z * z
    e = q * -0.5
    return np.exp(e, out=e), q
