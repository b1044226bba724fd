"""J·θ at one rotation without J: a weighted product of the rotated rows instead of k weighted covariances.

The full Jacobian of k components takes n·k³ multiplications and k⁴/4 numbers. Its product with one θ takes 2·n·k²
multiplications and two numbers per entry of Y, and is exact too.
"""

from __future__ import annotations

import numpy as np

from sigmapca_cli.solvers.newton.jacobian import pack, unpack
from sigmapca_cli.solvers.newton.scores import Score
from sigmapca_cli.solvers.rows.parallel import BLOCK, count, total
from sigmapca_cli.solvers.rows.weights import split, times

Array = np.ndarray


class Product:
    """θ ↦ Jθ on pairs i < j, (k(k−1)/2,), for the rows Y (n, k) at y = YR.

    Holds z = Y·RΣ⁻¹ and φ′(z), times the weight of the row, side by side, (n, 2k) in the type of Y.
    """

    def __init__(
        self, Y: Array, C: Array, R: Array, score: Score, a: Array, signs: Array, block: int = BLOCK
    ) -> None:
        """Y (n, k), or with weights (n, k + 1), second moments C (k, k), rotation R (k, k), a and signs (k,)."""
        self.n, self.k, self.block = count(Y), len(C), block
        self.C = R.T @ C @ R
        self.sigma = np.sqrt(np.diag(self.C))
        self.held = np.empty((len(Y), 2 * self.k), Y.dtype)
        self.held[:, : self.k], weights = split(Y, self.k)
        self.held[:, self.k :] = 1 if weights is None else weights
        Q, own = self._hold((R / self.sigma).astype(Y.dtype), score, a.astype(Y.dtype), signs)
        self.N = Q * np.outer(self.sigma, self.sigma)
        self.A = Q * (self.sigma / self.sigma[:, None])
        self.rest = (Q - own) / np.outer(self.sigma, self.sigma)
        self.held[:, self.k :] *= signs.astype(Y.dtype)

    def _hold(self, M: Array, score: Score, a: Array, signs: Array) -> tuple[Array, Array]:
        """Fill the held rows in place; return Q_ij = E[z_i φ(z_j)] and T_jij = E[φ′(z_j) z_i z_j], each (k, k)."""
        k = self.k

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows[:, :k] @ M
            phi, dphi = (times(values, rows[:, k:]) for values in score(z, a))
            rows[:, :k], rows[:, k:] = z, dphi
            return z.T @ phi, z.T @ (dphi * z)

        Q, own = (value * signs / self.n for value in total(part, self.held, self.block))
        return Q, own

    def __call__(self, theta: Array) -> Array:
        """Return Jθ (pairs,): dS = dA − dAᵀ, where the components change by dy = yθᵀ.

        dA_ij = (θN)_ij/σ_i² − 2A_ij(θC)_ii/σ_i² + E[z_i φ′(z_j) dy_j]/σ_i + (Q_ij − T_jij)(θC)_jj/(σ_i σ_j).
        """
        k, turn = self.k, unpack(theta, self.k)
        moves = (turn * self.sigma).T.astype(self.held.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows[:, :k]
            return (z.T @ (rows[:, k:] * (z @ moves)),)

        (weighted,) = total(part, self.held, self.block)
        s, drift = self.sigma[:, None], np.einsum("il,li->i", turn, self.C)
        own = (turn @ self.N - 2 * self.A * drift[:, None]) / s**2
        dA = own + weighted / (self.n * s) + self.rest * drift
        return pack(dA - dA.T)
