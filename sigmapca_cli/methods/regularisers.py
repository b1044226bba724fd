"""Terms added to an objective, each with its weight: (x (…, b, p), W (…, p, k), y = xW, sigma (…, k)) -> (…).

Triangles are decided by the outcome: the gradient that reaches column i comes from the columns before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sigmapca_cli.methods.notation import E, eye_like, frobenius, linear_weights, sg, sq, strict_lower

Regulariser = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def symmetric(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """‖I − WᵀW‖²_F; gradient 4W(WᵀW − I)  (paper, symmetric orthogonality; bigradient)."""
    gram = W.mT @ W
    return frobenius(eye_like(gram) - gram)


def asymmetric(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """½‖tri(Wᵀ[W]sg) − I‖²_F; gradient W triu(WᵀW − I)  (paper, asymmetric, with the diagonal)."""
    gram = W.mT @ sg(W)
    return 0.5 * frobenius(gram.tril() - eye_like(gram))


def asymmetric_off_diagonal(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """½‖tri₋(Wᵀ[W]sg)‖²_F; gradient W triu₋(WᵀW)  (paper, asymmetric, without the diagonal)."""
    return 0.5 * frobenius(strict_lower(W.mT @ sg(W)))


def asymmetric_sigma(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """½‖tri₋(Wᵀ[WΣ]sg)‖²_F: as strong as the data's variances  (paper, asymmetric, weighted)."""
    return 0.5 * frobenius(strict_lower(W.mT @ sg(W * sigma[..., None, :])))


def encoder(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """E‖x − xW[Wᵀ]sg‖²; gradient 2xᵀy(WᵀW − I)  (paper, encoder contribution)."""
    return E(sq(x - y @ sg(W).mT))


def unit_norm(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """Σ_j ½(1 − ‖w_j‖)²; gradient (1 − 1/‖w‖)w  (paper, unit norm)."""
    return 0.5 * (1 - torch.linalg.vector_norm(W, dim=-2)).square().sum(-1)


def l1(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """E Σ_j |y_j|  (paper, L1 sparsity)."""
    return E(y.abs().sum(-1))


def log_cosh(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """E Σ_j log cosh y_j, written so that a large y does not overflow  (paper, L1 sparsity)."""
    return E((y + torch.nn.functional.softplus(-2 * y) - math.log(2)).sum(-1))


def weighted_variance(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor) -> Tensor:
    """−E‖xWΛ^½‖², λ linear from 1 to 0.05  (paper, weighted variance maximisation)."""
    return -E((y.square() * linear_weights(W.shape[-1], 0.05, W)).sum(-1))


REGISTRY: dict[str, Regulariser] = {
    term.__name__: term
    for term in (
        symmetric, asymmetric, asymmetric_off_diagonal, asymmetric_sigma, encoder, unit_norm, l1, log_cosh,
        weighted_variance,
    )
}  # fmt: skip
