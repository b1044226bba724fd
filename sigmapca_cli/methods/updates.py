"""The weight updates ΔW that the paper gives without a loss: (x (…, b, p), W (…, p, k), y = xW, …) -> ΔW (…,
p, k).

Means over the batch; the caller steps along +ΔW. Where the paper prints a lower triangle the upper one
stands here: column j of W is corrected by the columns before it, so that index 0 gets the largest variance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods.notation import eye_like, off_diagonal, outer, per_run
from sigmapca_cli.methods.registry import update

H = Callable[[Tensor], Tensor]


@update({"triangular": "gha"})
def subspace(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """xᵀy − W yᵀy  (linear table, row 3)."""
    return outer(x, y) - W @ outer(y, y)


@update()
def wsla_1(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀy − W yᵀy Λ⁻¹  (linear table, row 4)."""
    return outer(x, y) - W @ outer(y, y) / lam


@update()
def wsla_2(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀyΛ − W yᵀy  (linear table, row 5)."""
    return outer(x, y) * lam - W @ outer(y, y)


@update()
def wsla_3(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀy − W (yΛ^½)ᵀ y Λ^−½  (linear table, row 6)."""
    root = lam.sqrt()
    return outer(x, y) - W @ outer(y * root, y) / root


@update()
def wsla_1_unit(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀy − W(yΛ)ᵀyΛ⁻¹: the first form with unit norm  (paper, weighted subspace with unit norm, option 1)."""
    return outer(x, y) - W @ outer(y * lam, y) / lam


@update()
def wsla_2_unit(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀyΛ − W(yΛ)ᵀy: the second form with unit norm  (paper, weighted subspace with unit norm, option 1)."""
    return outer(x, y) * lam - W @ outer(y * lam, y)


@update()
def wsla_1_diagonal(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀy − W(yᵀyΛ⁻¹ off its diagonal, diag(y²) on it)  (paper, weighted subspace with unit norm, option 2)."""
    moment = outer(y, y)
    return wsla_1(x, W, y, lam) - W * (1 - 1 / lam) * moment.diagonal(dim1=-2, dim2=-1)[..., None, :]


@update()
def wsla_2_diagonal(x: Tensor, W: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """xᵀyΛ − W(yᵀy off its diagonal, diag(y²)Λ on it): ½ of the gradient of `wsla_unit_norm` where Σ̂² = E y²."""
    moment = outer(y, y)
    return wsla_2(x, W, y, lam) - W * (lam - 1) * moment.diagonal(dim1=-2, dim2=-1)[..., None, :]


@update()
def weighted_latent(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, lam: Tensor) -> Tensor:
    """xᵀyΛ − xᵀh(yΣ⁻¹)ΣΛWᵀW  (paper, weighted latent reconstruction).

    Not minus the gradient of the loss printed with it (`main_weighted_latent`), which is
    2xᵀ((([y]Λ − h(yΣ⁻¹)ΣΛWᵀW)WᵀWΛ) ⊙ h′): at orthonormal W and h′ = 1 that has Λ² for Λ.
    """
    return outer(x, y) * lam - outer(x, h(y / sigma) * sigma * lam) @ (W.mT @ W)


def slope(h: H, z: Tensor) -> Tensor:
    """h′(z), as the backward pass has it (1 with nonlinearity.derivative=one)."""
    leaf = z.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(h(leaf).sum(), leaf)[0]


@update()
def main_scaled_encoder(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """−xᵀ((ŷ − y) ⊙ h′(z))Σ − (x̂ − x)ᵀh(z)Σ  (paper, modified decoder contribution, option 1)."""
    z = y / sigma
    x_hat = (h(z) * sigma) @ W.mT
    return -outer(x, (x_hat @ W - y) * slope(h, z) * sigma) - outer(x_hat - x, h(z) * sigma)


@update()
def main_unscaled_decoder(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """−xᵀ((ŷ − y) ⊙ h′(z)) − (x̂ − x)ᵀh(z)  (paper, modified decoder contribution, option 2).

    nonlinearity.derivative=one drops h′ too, as the paper leaves open.
    """
    z = y / sigma
    x_hat = (h(z) * sigma) @ W.mT
    return -outer(x, (x_hat @ W - y) * slope(h, z)) - outer(x_hat - x, h(z))


@update()
def gha(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """xᵀy − W triu(yᵀy)  (linear table, row 8)."""
    return outer(x, y) - W @ outer(y, y).triu()


@update()
def gha_encoder(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """xᵀy − W triu(yᵀy) − xᵀy(triu(WᵀW) − I)  (linear table, row 9)."""
    gram = W.mT @ W
    return gha(x, W, y) - outer(x, y) @ (gram.triu() - eye_like(gram))


@update()
def gha_subspace(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """xᵀy − W triu(yᵀy) − W(yᵀy − diag(y²))  (linear table, row 10)."""
    return gha(x, W, y) - W @ off_diagonal(outer(y, y))


@update()
def easi(x: Tensor, W: Tensor, y: Tensor, h: H, alpha: Any) -> Tensor:
    """−W(yᵀy − I + α(yᵀh(y) − h(y)ᵀy)), α = 1 for super-, −1 for sub-Gaussian sources  (paper, EASI)."""
    covariance, moment = outer(y, y), outer(y, h(y))
    return -W @ (covariance - eye_like(covariance) + per_run(alpha, 2) * (moment - moment.mT))


@update()
def bigradient(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """xᵀh(yΣ⁻¹)Σ, the ascent part; the orthogonality part is a regulariser

    (paper, symmetric; Wang and others 1995).
    """
    return outer(x, h(y / sigma) * sigma)
