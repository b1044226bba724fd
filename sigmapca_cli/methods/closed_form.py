"""The gradient of the main loss by hand, the one that runs for hours; tested against autograd of
`objectives.main`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def main_gradient(
    x: Tensor,
    W: Tensor,
    y: Tensor,
    sigma: Tensor,
    h: Tensor,
    dh: Any,
    centred: bool = True,
) -> tuple[Tensor, Tensor]:
    """Loss and gradient of E‖x − h(yΣ⁻¹)Σ[Wᵀ]sg‖², Σ constant (paper, nonlinear PCA; errata 4).

        ∂L/∂W = 2E[xᵀ((h(z)σ WᵀW − y) ⊙ h′(z))],  L = E‖x‖² − 2E⟨ŷ, y⟩ + E⟨ŷ WᵀW, ŷ⟩ with ŷ = h(z)σ

    Shapes x (…, b, p), W (…, p, k), y, h, dh (…, b, k), sigma (…, 1, k) -> (…), (…, p, k). With
    `centred` False y is taken about the batch's mean already while x is not: centring the (b, k) factor
    gives the same outer product as centring x, (x − x̄)ᵀG = xᵀ(G − Ḡ), and spares a pass over (b, p).
    `h` and `dh` are overwritten.
    """
    b = y.shape[-2]
    gram = W.mT @ W
    y_hat = h.mul_(sigma)
    G = y_hat @ gram
    power = torch.linalg.vector_norm(x, dim=(-2, -1)).square() / b
    if not centred:
        power = power - x.mean(-2).square().sum(-1)
    # G is ŷWᵀW here: ⟨ŷ, ŷWᵀW − 2y⟩ in one pass.
    loss = power + (torch.sub(G, y, alpha=2) * y_hat).sum((-2, -1)) / b
    G.sub_(y)
    if isinstance(dh, Tensor):
        G.mul_(dh)
    if not centred:
        G.sub_(G.mean(-2, keepdim=True))
    G.mul_(2 / b)
    return loss, x.mT @ G
