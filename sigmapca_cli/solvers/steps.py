"""Steps on the rotation group: pairwise Newton, full Newton, and full Newton that turns away from unstable directions."""

from __future__ import annotations

import numpy as np
import torch

from sigmapca_cli.solvers.jacobian import pack, unpack

Array = np.ndarray

PAIR_CLIP = 0.5
"""Largest angle of a pairwise step, radians."""
TRUST = 0.3
"""Largest angle of a full step far from the solution, radians."""
RELATIVE_FLOOR = 0.05
"""A pair's curvature counts as at least this fraction of its scale: near-Gaussian pairs must not take wild steps."""
EIGEN_FLOOR = 0.02
"""The same for the eigenvalues of the preconditioned Jacobian."""
LARGEST_EIGEN = 800
"""Pairs up to which a symmetric eigendecomposition is affordable (k = 40); beyond, a shift found by Cholesky serves."""


def preconditioner(H: Array, K: Array) -> Array:
    """D = max(|H|, 0.05·K) on pairs i < j: |H|, so that an unstable pair is left rather than approached."""
    return np.maximum(pack(np.maximum(np.abs(H), RELATIVE_FLOOR * K)), np.finfo(np.float64).tiny)


def pairwise_step(S: Array, D: Array) -> Array:
    """θ = −S/D clipped: what Newton's method gives if no pair acted on another."""
    return np.clip(-pack(S) / D, -PAIR_CLIP, PAIR_CLIP)


def newton_step(J: Array, S: Array) -> Array:
    """θ = −J⁻¹S, unlimited; converges quadratically, but to unstable solutions as well."""
    try:
        return np.linalg.solve(J, -pack(S))
    except np.linalg.LinAlgError:
        return np.full(len(J), np.inf)


def guarded_step(J: Array, S: Array, D: Array) -> Array:
    """θ = −B⁻¹S scaled to the trust radius, where B is J made positive.

    With J̃ = D^−½ J D^−½ = A + skew part and A = V diag(λ) Vᵀ: λ becomes max(|λ|, floor). The flow θ' = −S leaves a
    direction of negative λ, so does this step (as in saddle-free Newton, Dauphin et al. 2014); where all λ exceed the
    floor it is Newton's step.
    """
    root = np.sqrt(D)
    B = J / np.outer(root, root)
    theta = -np.linalg.solve(_positive(B), pack(S) / root) / root
    return theta * min(1.0, TRUST / max(float(np.abs(theta).max()), TRUST))


def _positive(B: Array) -> Array:
    symmetric = (B + B.T) / 2
    if len(B) <= LARGEST_EIGEN:
        eigenvalues, vectors = np.linalg.eigh(symmetric)
        change = np.maximum(np.abs(eigenvalues), EIGEN_FLOOR) - eigenvalues
        return B + (vectors * change) @ vectors.T
    shift = 0.0
    while not _is_positive(symmetric, shift - EIGEN_FLOOR):
        shift = max(2 * shift, 0.03)
    return B + shift * np.eye(len(B))


def _is_positive(symmetric: Array, shift: float) -> bool:
    try:
        np.linalg.cholesky(symmetric + shift * np.eye(len(symmetric)))
    except np.linalg.LinAlgError:
        return False
    return True


def rotate(R: Array, theta: Array) -> Array:
    """R·expm(θᵀ), θ antisymmetric, so that to first order y_i gains θ_ij·y_j; orthonormal to rounding error."""
    turn = torch.matrix_exp(torch.from_numpy(np.ascontiguousarray(unpack(theta, len(R)).T)))
    return R @ turn.numpy()
