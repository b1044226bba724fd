"""What is done to W (…, p, k) after each step, each a function W -> W; and weight norm, a parametrisation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sigmapca_cli.methods.notation import eye_like


def none(W: Tensor) -> Tensor:
    """No constraint."""
    return W


def unit_norm(W: Tensor) -> Tensor:
    """w_j ← w_j/‖w_j‖, the nearest point with unit columns; a zero column stays zero  (paper, unit norm)."""
    norm = torch.linalg.vector_norm(W, dim=-2, keepdim=True)
    return W / norm.clamp_min(torch.finfo(W.dtype).tiny)


def symmetric(W: Tensor, iterations: int = 100) -> Tensor:
    """W ← 3/2 W − 1/2 W WᵀW to convergence: the polar factor W(WᵀW)^−½, no column favoured  (paper,
    symmetric).

    Unit columns alone do not bound the singular values by 1 (two parallel columns give √2, k of them
    √k), and the iteration needs them below √3: W is divided by √‖WᵀW‖∞ as well, which leaves the polar
    factor as it is.
    """
    W = unit_norm(W)
    gram = W.mT @ W
    W = W / gram.abs().sum(-1).amax(-1).clamp_min(1e-30).sqrt()[..., None, None]
    tolerance = 10 * torch.finfo(W.dtype).eps
    for _ in range(iterations):
        gram = W.mT @ W
        W = 1.5 * W - 0.5 * W @ gram
        if float((gram - eye_like(gram)).abs().max()) < tolerance:
            break
    return W


def gram_schmidt(W: Tensor) -> Tensor:
    """Orthonormal columns, column j made orthogonal to the columns before it: QR with a positive
    diagonal of R.
    """
    Q, R = torch.linalg.qr(W)
    signs = torch.sign(R.diagonal(dim1=-2, dim2=-1))
    return Q * torch.where(signs == 0, 1.0, signs)[..., None, :]


def weight_norm_gradient(W: Tensor, gradient: Tensor) -> Tensor:
    """∂L/∂w from ∂L/∂ŵ where ŵ = w/‖w‖: (I − ŵŵᵀ)∂L/∂ŵ / ‖w‖, per column

    (paper, differentiable normalisation).
    """
    norm = torch.linalg.vector_norm(W, dim=-2, keepdim=True).clamp_min(torch.finfo(W.dtype).tiny)
    unit = W / norm
    return (gradient - unit * (unit * gradient).sum(-2, keepdim=True)) / norm


PARAMETRISED = {"weight_norm", "weight_unit_norm"}
"""Constraints whose gradient goes through ŵ = w/‖w‖. With unit_norm as well that is the tangent gradient at ‖w‖ = 1."""

REGISTRY: dict[str, Callable[[Tensor], Tensor]] = {
    "none": none,
    "unit_norm": unit_norm,
    "symmetric": symmetric,
    "gram_schmidt": gram_schmidt,
    "weight_norm": none,
    "weight_unit_norm": unit_norm,
}

UNIT_NORM = {"unit_norm", "symmetric", "gram_schmidt", "weight_norm", "weight_unit_norm"}
"""Constraints under which every column has unit norm: only there does a tangent projection make sense."""
