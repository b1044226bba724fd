"""A last polish: W leaves the span of the leading eigenvectors for the stationary point of the whole
gradient.

The rotation solver answers within span(P) and in the limit of orthonormal W. The loss itself wants a little
more: the part of E[x φ(z_j)] outside the span does not vanish, and WᵀW differs from I by about N_ij/σ_i².
Both are corrected here, on a sample of rows, by steps preconditioned in three blocks: rotations within the
span, oblique changes within it, and turns of each column towards the eigenvectors outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.errors import InputError
from sigmapca_cli.solvers.newton import NewtonResult
from sigmapca_cli.sources.base import Source

Array = np.ndarray

ROWS = 100_000
LARGEST_TURN = 0.1
"""Longest step of a column of unit norm."""
FLOOR = 0.1
"""A curvature counts as at least this fraction of the sum of its absolute terms."""


@dataclass
class Gradient:
    """E of one pass: G (p, k) tangent gradient, M (k, k) its inside part WᵀG/σ_i², and per column m, c,
    E[zh], E[h′]."""

    G: Array
    M: Array
    sigma: Array
    m: Array
    c: Array
    zh: Array
    dh: Array

    @property
    def size(self) -> Array:
        """‖G_j‖/(σ_j²(|m_j| + |c_j|)) per column: about the angle still to go, radians."""
        return np.linalg.norm(self.G, axis=0) / (self.sigma**2 * (np.abs(self.m) + np.abs(self.c)))


def gradient(W: Array, C: Array, X: Tensor, a: Array, derivative: str, block: int = 4096) -> Gradient:
    """Tangent gradient of the main loss: E[xᵀ((h(z)σWᵀW − y) ⊙ h′(z))] less its part along each
    column.

    X (n, p) centred rows, W (p, k) unit norm columns, σ exact from C and held constant, h = a·tanh(z/a).
    """
    sigma = np.sqrt(np.einsum("pk,pk->k", W, C @ W))
    gram = W.T @ W
    Wt, st, at, gt = (torch.from_numpy(v).to(X.dtype) for v in (W, sigma, np.asarray(a, float), gram))
    G = torch.zeros(W.shape, dtype=torch.float64)
    sums = torch.zeros(4, W.shape[1], dtype=torch.float64)
    for x in X.split(block):
        z = (x @ Wt) / st
        t = torch.tanh(z / at)
        h, true_dh = at * t, 1 - t * t
        dh = true_dh if derivative == "true" else torch.ones_like(z)
        phi = (z - h) * dh
        dphi = true_dh * (3 * t * t - 2 * t * z / at) if derivative == "true" else t * t
        G += (x.T @ (((h * st) @ gt - z * st) * dh)).double()
        sums += torch.stack([(v).sum(0) for v in (z * phi, dphi, z * h, dh)]).double()
    full, (m, c, zh, mean_dh) = G.numpy() / len(X), sums.numpy() / len(X)
    tangent = full - W * np.einsum("pk,pk->k", W, full)
    return Gradient(tangent, W.T @ tangent / sigma[:, None] ** 2, sigma, m, c, zh, mean_dh)


def step(W: Array, g: Gradient, values: Array, vectors: Array) -> Array:
    """ΔW (p, k): minus the gradient over its curvature, block by block (docs/solver.md)."""
    inside = _inside(g)
    rest = vectors.T @ (g.G - W @ np.linalg.lstsq(W, g.G, rcond=None)[0])
    own, other = g.m * g.sigma**2, np.outer(values, g.c)
    outside = -rest / np.maximum(np.abs(own - other), FLOOR * (np.abs(own) + np.abs(other)))
    delta = W @ inside + vectors @ outside
    length = np.linalg.norm(delta, axis=0)
    return delta * (LARGEST_TURN / np.maximum(length, LARGEST_TURN))


def _inside(g: Gradient) -> Array:
    """E (k, k), ΔW = W·E: for each pair the two linear equations dM_ij = (α_ij + q_ij)·E_ij + q_ij·E_ji, and
    (j, i)."""
    q = np.outer(g.zh, g.dh)
    gain = g.m * (g.sigma / g.sigma[:, None]) ** 2
    own = gain - g.c + q
    determinant = own * own.T - q * q.T
    size = (np.abs(gain) + np.abs(g.c) + q) * (np.abs(gain) + np.abs(g.c) + q).T
    determinant = np.copysign(np.maximum(np.abs(determinant), FLOOR * size), determinant)
    E = -(own.T * g.M - q * g.M.T) / determinant
    np.fill_diagonal(E, 0)
    return E


def polish(
    W: Array,
    C: Array,
    source: Source,
    result: NewtonResult,
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    *,
    tol: float = 1e-3,
    max_iter: int = 60,
) -> tuple[Array, dict[str, Any]]:
    """W (p, k) after the polish, unit norm columns, and what it did: sizes of the gradient before and after,
    how far W went.

    At most ROWS rows, drawn evenly, take part: beyond the sampling error of those the answer is not better
    than the start. The best W seen is returned, so a polish that does not converge does no harm; `polished`
    says whether it did.
    """
    if nonlinearity not in ("scaled_tanh", "tanh"):
        raise InputError(
            f"solver.polish knows tanh and scaled_tanh, not {nonlinearity}; use solver.polish=false"
        )
    a = result.a if nonlinearity == "scaled_tanh" else np.ones_like(result.a)
    X = _rows(source)
    values, vectors = np.linalg.eigh(C)
    start = best = W
    size = first = None
    for _ in range(max_iter):
        g = gradient(W, C, X, a, derivative)
        now = float(g.size.max())
        first = now if first is None else first
        if size is None or now < size:
            best, size = W, now
        if now < tol or not np.isfinite(now) or now > 10 * first:
            break
        W = W + step(W, g, values, vectors)
        W = W / np.linalg.norm(W, axis=0)
    moved = np.einsum("pk,pk->k", start, best)
    return best, {
        "polished": bool(size is not None and size < tol),
        "gradient_before_polish": first,
        "gradient_after_polish": size,
        "polish_cosine": float(moved.min()),
    }


def _rows(source: Source) -> Tensor:
    count = min(source.n, ROWS)
    jitter = np.random.default_rng(1).random(count) if count < source.n else 0.0
    index = ((np.arange(count) + jitter) * (source.n / count)).astype(np.int64)
    mean = np.asarray(source.covariance()[0], np.float32)
    return torch.from_numpy(np.concatenate([source.rows(part) - mean for part in np.array_split(index, 50)]))
