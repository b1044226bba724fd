"""Steps on the rotation group: pairwise Newton, full Newton, and one that turns away from unstable directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers.newton.jacobian import pack, unpack

Array = np.ndarray

PAIR_CLIP = 0.5
"""Largest angle of a pairwise step, radians."""
TRUST = 0.3
"""Largest angle of a full step far from the solution, radians; halved while successive steps oppose each
other."""
LEAST_TRUST = 0.02
"""Smallest value of that bound, radians."""
RELATIVE_FLOOR = 0.05
"""A pair's curvature counts as at least this fraction of its scale, so that nearly Gaussian pairs take no large
steps."""
EIGEN_FLOOR = 0.02
"""The same for the eigenvalues of the preconditioned Jacobian."""
UNSTABLE = 0.05
"""A stationary point is unstable if an eigenvalue of D^−½JD^−½ has a real part below minus this."""
LARGEST_EIGEN = 800
"""Largest number of pairs for which the whole Jacobian and its eigenvalues are computed (k = 40); for more, see
krylov.py."""


def preconditioner(H: Array, K: Array) -> Array:
    """Return D = max(|H|, 0.05·K) on pairs i < j; with |H|, steps lead away from an unstable pair."""
    return np.maximum(pack(np.maximum(np.abs(H), RELATIVE_FLOOR * K)), np.finfo(np.float64).tiny)


def pairwise_step(S: Array, D: Array) -> Array:
    """Return θ = −S/D, clipped: the Newton step if pairs did not act on each other."""
    return np.clip(-S / D, -PAIR_CLIP, PAIR_CLIP)


@dataclass(frozen=True)
class DenseJacobian:
    """The whole Jacobian J on pairs i < j, and its preconditioner D."""

    J: Array
    D: Array

    def newton(self, S: Array) -> Array:
        """Return θ = −J⁻¹S, unlimited; it converges quadratically, but to unstable solutions too."""
        try:
            return np.linalg.solve(self.J, -S)
        except np.linalg.LinAlgError:
            return np.full(len(S), np.inf)

    def newton_and_guarded(self, S: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the Newton step, and a function that computes the guarded step."""
        return self.newton(S), lambda: self.guarded(S)

    def guarded(self, S: Array) -> Array:
        """Return the guarded step alone."""
        return guarded_step(self.J, S, self.D)

    def corrected(self, change: Array, theta: Array) -> DenseJacobian:
        """Return J + (ΔS − Jθ)θᵀ/‖θ‖²: the smallest change of J that maps the last step θ to ΔS (Broyden 1965)."""
        J = self.J + np.outer(change - self.J @ theta, theta) / max(float(theta @ theta), 1e-300)
        return replace(self, J=J)

    def unstable(self, bound: float) -> Array | None:
        """Return the direction along which the flow θ' = −S leaves this stationary point fastest, largest entry 1.

        Return None if the point is stable.
        """
        root = np.sqrt(self.D)
        eigenvalues, vectors = np.linalg.eig(self.J / np.outer(root, root))
        worst = int(eigenvalues.real.argmin())
        if eigenvalues[worst].real > -bound:
            return None
        direction = vectors[:, worst].real / root
        return direction / direction[np.abs(direction).argmax()]


def guarded_step(J: Array, S: Array, D: Array) -> Array:
    """Return θ = −B⁻¹S, where B is J made positive; S on pairs i < j.

    With J̃ = D^−½ J D^−½ = A + skew part and A = V diag(λ) Vᵀ: λ becomes max(|λ|, floor). Along a direction of
    negative λ the flow θ' = −S leads away, and so does this step (as in saddle-free Newton, Dauphin et al. 2014). If
    all λ exceed the floor, it is the Newton step.
    """
    root = np.sqrt(D)
    B = J / np.outer(root, root)
    return -np.linalg.solve(positive(B), S / root) / root


def limited(theta: Array, angle: float) -> Array:
    """Return θ scaled so that no entry exceeds the angle, radians."""
    return theta * (angle / max(float(np.abs(theta).max(initial=0.0)), angle))


def adapted(trust: float, move: Array, last: Array, most: float = TRUST) -> float:
    """Return the bound of the next step: shorter while steps oppose each other, longer while they agree.

    There is no merit function for a line search: a step against the last one shows that the bound is too large.
    """
    cosine = np.vdot(move, last) / (np.linalg.norm(move) * np.linalg.norm(last) + 1e-300)
    trust *= 0.5 if cosine < -0.2 else 1.5 if cosine > 0.2 else 1.0
    return min(max(trust, LEAST_TRUST), most)


def positive(B: Array) -> Array:
    """Return B with each eigenvalue λ of its symmetric part replaced by max(|λ|, EIGEN_FLOOR)."""
    symmetric = (B + B.T) / 2
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    change = np.maximum(np.abs(eigenvalues), EIGEN_FLOOR) - eigenvalues
    return B + (vectors * change) @ vectors.T


def rotate(R: Array, theta: Array) -> Array:
    """Return R·expm(θᵀ), θ antisymmetric: to first order y_i gains θ_ij·y_j. It is orthogonal to rounding error."""
    # iK is Hermitian for an antisymmetric K, so that exp(K) = V·diag(e^−iλ)·Vᴴ is orthogonal to rounding error.
    values, V = np.linalg.eigh(1j * unpack(theta, len(R)).T)
    return R @ np.real((V * np.exp(-1j * values)) @ V.conj().T)
