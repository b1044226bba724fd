"""Steps on the rotation group: pairwise Newton, full Newton, and one that turns away from unstable directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers.jacobian import pack, unpack

Array = np.ndarray

PAIR_CLIP = 0.5
"""Largest angle of a pairwise step, radians."""
TRUST = 0.3
"""Largest angle of a full step far from the solution, radians; halved while successive steps oppose each
other."""
LEAST_TRUST = 0.02
RELATIVE_FLOOR = 0.05
"""A pair's curvature counts as at least this fraction of its scale: near-Gaussian pairs must not take wild
steps."""
EIGEN_FLOOR = 0.02
"""The same for the eigenvalues of the preconditioned Jacobian."""
UNSTABLE = 0.05
"""A stationary point is called unstable where an eigenvalue of D^−½JD^−½ has a real part below minus this."""
LARGEST_EIGEN = 800
"""Pairs up to which the whole Jacobian and its eigenvalues are affordable (k = 40); beyond, see krylov.py."""


def preconditioner(H: Array, K: Array) -> Array:
    """D = max(|H|, 0.05·K) on pairs i < j: |H|, so that an unstable pair is left rather than approached."""
    return np.maximum(pack(np.maximum(np.abs(H), RELATIVE_FLOOR * K)), np.finfo(np.float64).tiny)


def pairwise_step(S: Array, D: Array) -> Array:
    """θ = −S/D clipped: what Newton's method gives if no pair acted on another."""
    return np.clip(-S / D, -PAIR_CLIP, PAIR_CLIP)


@dataclass(frozen=True)
class Dense:
    """The whole Jacobian J on pairs i < j, and its preconditioner D."""

    J: Array
    D: Array

    def newton(self, S: Array) -> Array:
        """θ = −J⁻¹S, unlimited; converges quadratically, but to unstable solutions as well."""
        try:
            return np.linalg.solve(self.J, -S)
        except np.linalg.LinAlgError:
            return np.full(len(S), np.inf)

    def both(self, S: Array) -> tuple[Array, Callable[[], Array]]:
        """Newton's step, and the guarded one where it is wanted."""
        return self.newton(S), lambda: self.guarded(S)

    def guarded(self, S: Array) -> Array:
        """The guarded step alone."""
        return guarded_step(self.J, S, self.D)

    def corrected(self, change: Array, theta: Array) -> Dense:
        """J + (ΔS − Jθ)θᵀ/‖θ‖²: the least change of J that explains what the last step did to S (Broyden 1965)."""
        J = self.J + np.outer(change - self.J @ theta, theta) / max(float(theta @ theta), 1e-300)
        return replace(self, J=J)

    def unstable(self, bound: float) -> Array | None:
        """Return the direction in which the flow θ' = −S leaves this stationary point fastest, or None if it is stable.

        Its largest entry is 1.
        """
        root = np.sqrt(self.D)
        eigenvalues, vectors = np.linalg.eig(self.J / np.outer(root, root))
        worst = int(eigenvalues.real.argmin())
        if eigenvalues[worst].real > -bound:
            return None
        direction = vectors[:, worst].real / root
        return direction / direction[np.abs(direction).argmax()]


def guarded_step(J: Array, S: Array, D: Array) -> Array:
    """θ = −B⁻¹S, where B is J made positive; S on pairs i < j.

    With J̃ = D^−½ J D^−½ = A + skew part and A = V diag(λ) Vᵀ: λ becomes max(|λ|, floor). The flow θ' = −S
    leaves a direction of negative λ, so does this step (as in saddle-free Newton, Dauphin et al. 2014); where
    all λ exceed the floor it is Newton's step.
    """
    root = np.sqrt(D)
    B = J / np.outer(root, root)
    return -np.linalg.solve(positive(B), S / root) / root


def limited(theta: Array, angle: float) -> Array:
    """θ scaled so that no entry exceeds the angle."""
    return theta * (angle / max(float(np.abs(theta).max(initial=0.0)), angle))


def positive(B: Array) -> Array:
    """B with the eigenvalues of its symmetric part replaced by their absolute values, or the floor."""
    symmetric = (B + B.T) / 2
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    change = np.maximum(np.abs(eigenvalues), EIGEN_FLOOR) - eigenvalues
    return B + (vectors * change) @ vectors.T


def rotate(R: Array, theta: Array) -> Array:
    """Return R·expm(θᵀ), θ antisymmetric: to first order y_i gains θ_ij·y_j. It is orthonormal to rounding error."""
    # iK is Hermitian for an antisymmetric K, so that exp(K) = V·diag(e^−iλ)·Vᴴ is orthogonal to rounding error.
    values, V = np.linalg.eigh(1j * unpack(theta, len(R)).T)
    return R @ np.real((V * np.exp(-1j * values)) @ V.conj().T)
