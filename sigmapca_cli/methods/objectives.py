"""The losses, one pure function each: (x (…, b, p), W (…, p, k), y = xW, …) -> (…), mean over the batch of
‖·‖² over features.

`h` is a function z -> h(z) whose backward pass is h′ (or 1); `sigma` (…, 1, k) is a constant of the gradient
unless it is trained; `lam` (k,) are the weights λ; `mask` (b, k) a nested mask; `alpha`, `beta` numbers or
(…); `mean` takes the mean over the rows of the whole batch, (…, b, ·) -> (…, 1, ·).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods.notation import E, eye_like, off_diagonal, outer, sg, sq, strict_lower, strict_upper
from sigmapca_cli.methods.registry import objective

H = Callable[[Tensor], Tensor]
Linear = Callable[[Tensor, Tensor, Tensor], Tensor]

MAIN = {
    "deflation": "main_deflation",
    "nested_dropout": "main_nested_dropout",
    "weighted_latent": "main_weighted_latent",
    "noncentred": "main_noncentred",
    "noncentred_mean": "main_noncentred_mean",
}
"""What an ordering or a centring makes of the main loss."""


# ---- linear PCA ----


def tied(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """E‖x − xWWᵀ‖²."""
    return E(sq(x - y @ W.mT))


def subspace_form(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """E‖x − x[W]sgWᵀ‖², whose gradient is −2(xᵀy − W yᵀy)  (paper, subspace learning algorithm)."""
    return E(sq(x - sg(y) @ W.mT))


@objective({"nested_dropout": "nested_dropout_linear", "hierarchical": "hierarchical_linear"})
def linear_ae(x: Tensor, W: Tensor, y: Tensor, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖²  (linear table, row 2); model.reconstruction=subspace: E‖x − x[W]sgWᵀ‖²."""
    return linear(x, W, y)


@objective()
def wsla_unit_norm(x: Tensor, W: Tensor, y: Tensor, sigma: Tensor, lam: Tensor) -> Tensor:
    """E(‖x[W]sgWᵀ − x‖² + ‖WΣ̂Λ^½‖² − ‖WΣ̂‖² − ‖xWΛ^½‖² + ‖xW‖²)  (linear table, row 7)."""
    weights = ((W * sg(sigma)).square() * (lam - 1)).sum((-2, -1))
    return E(sq(sg(y) @ W.mT - x)) + weights + E((y.square() * (1 - lam)).sum(-1))


@objective()
def reconstruction_gha(x: Tensor, W: Tensor, y: Tensor, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖² + sum(W ⊙ [W tri₋(yᵀy)]sg)  (linear table, row 11)."""
    return linear(x, W, y) + (W * sg(W @ strict_upper(outer(y, y)))).sum((-2, -1))


@objective()
def nested_dropout_linear(x: Tensor, W: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """E‖(xW ⊙ m)Wᵀ − x‖², m keeps a geometric number of the first components  (linear table, row 12)."""
    return E(sq((y * mask) @ W.mT - x))


@objective()
def hierarchical_linear(x: Tensor, W: Tensor, y: Tensor) -> Tensor:
    """Σ_j E‖x − xW₁ⱼW₁ⱼᵀ‖², W₁ⱼ the first j columns  (paper, nested dropout, not stochastic; Scholz 2002).

    With M = E(yᵀy), G = WᵀW and c_i = k − i, i from 0, the number of sums that column i is in:
    k·E‖x‖² − 2 Σ_i c_i M_ii + Σ_il c_max(i,l) M_il G_il.
    """
    k = W.shape[-1]
    place = torch.arange(k, device=W.device)
    shared = (k - torch.maximum(place[:, None], place)).to(W.dtype)
    moment = outer(y, y)
    # 2 M_ii is that of yᵢ = x·wᵢ, and G couples it with the decoder: gradients flow through both.
    weighted = (shared * moment * (W.mT @ W)).sum((-2, -1))
    return k * E(sq(x)) - 2 * (shared.diagonal() * moment.diagonal(dim1=-2, dim2=-1)).sum(-1) + weighted


@objective()
def weighted_variance(x: Tensor, W: Tensor, y: Tensor, lam: Tensor, alpha: Any, linear: Linear) -> Tensor:
    """E(‖x − xWWᵀ‖² − α‖xWΛ^½‖²)  (linear table, row 13)."""
    return linear(x, W, y) - alpha * E((y.square() * lam).sum(-1))


@objective()
def variance_dropout(x: Tensor, W: Tensor, y: Tensor, mask: Tensor, alpha: Any, linear: Linear) -> Tensor:
    """E(‖x − xWWᵀ‖² − α‖xW ⊙ m‖²)  (linear table, row 14)."""
    return linear(x, W, y) - alpha * E(sq(y * mask))


# ---- nonlinear PCA: reconstruction of the input ----


@objective()
def conventional(x: Tensor, W: Tensor, y: Tensor, h: H) -> Tensor:
    """E‖x − h(xW)Wᵀ‖²  (nonlinear table, row 1)."""
    return E(sq(x - h(y) @ W.mT))


@objective()
def main_with_decoder(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x − h(xWΣ⁻¹)ΣWᵀ‖²: the general form, decoder contribution included  (nonlinear table, row 2)."""
    return E(sq(x - (h(y / sigma) * sigma) @ W.mT))


@objective(MAIN)
def main(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖²  (paper, nonlinear PCA; nonlinear table, rows 3 and 8 to 13)."""
    return E(sq(x - (h(y / sigma) * sigma) @ sg(W).mT))


@objective()
def main_deflation(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x − h(xW P(W)Σ⁻¹)Σ[Wᵀ]sg‖², P = I − tri₋(Wᵀ[W]sg)  (nonlinear table, row 16)."""
    P = eye_like(W.mT @ W) - deflation_triangle(W.mT @ sg(W))
    return E(sq(x - (h((y @ P) / sigma) * sigma) @ sg(W).mT))


deflation_triangle = strict_lower
"""Row i of Wᵀ[W]sg carries the gradient of column i: the lower triangle lets it see the columns before it."""


@objective()
def main_nested_dropout(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, mask: Tensor) -> Tensor:
    """E‖x − (h(xWΣ⁻¹) ⊙ m)Σ[Wᵀ]sg‖²  (nonlinear table, row 17, whose ‖WᵀW − I‖² is a regulariser)."""
    return E(sq(x - (h(y / sigma) * mask * sigma) @ sg(W).mT))


@objective()
def main_weighted_latent(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, lam: Tensor) -> Tensor:
    """E‖[y]sgΛ − h(yΣ⁻¹)ΣΛ[WᵀW]sg‖²  (paper, weighted latent reconstruction)."""
    return E(sq(sg(y) * lam - (h(y / sigma) * sigma * lam) @ sg(W.mT @ W)))


@objective()
def main_noncentred(
    x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, mean: H, inner: H, outer: H
) -> Tensor:
    """E‖x − (h((xW − μ_y)Σ⁻¹)Σ + μ_y)[Wᵀ]sg‖², μ_y the batch's mean  (paper, non-centred).

    inner and outer say whether the gradient flows through the μ_y that is subtracted and the one that is added back.
    The second adds −2μ_xᵀ(μ_y − (μ_y + E[h]Σ)WᵀW), which is zero at orthonormal W where E[h] = 0.
    """
    mean_y = mean(y)
    return E(sq(x - (h((y - inner(mean_y)) / sigma) * sigma + outer(mean_y)) @ sg(W).mT))


@objective()
def main_noncentred_mean(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, mean: H, inner: H) -> Tensor:
    """E‖x − μ_x − h((xW − μ_y)Σ⁻¹)Σ[Wᵀ]sg‖² + ‖μ_x − μ_xWWᵀ‖²  (paper, non-centred, second loss)."""
    mean_x, mean_y = mean(x), mean(y)
    return main(x - mean_x, W, y - inner(mean_y), h, sigma) + sq(mean_x - mean_y @ W.mT).squeeze(-1)


@objective()
def main_scaled_decoder(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, norm: H) -> Tensor:
    """Main loss + E‖x − [h(xWΣ⁻¹)Σ]sgWᵀ‖²/‖Σ‖  (paper, modified decoder contribution, option 3).

    ‖Σ‖ by model.norm: spectral, the largest σ; frobenius, √Σσ²; nuclear, Σσ.
    """
    decoder = E(sq(x - sg(h(y / sigma) * sigma) @ W.mT))
    return main(x, W, y, h, sigma) + decoder / norm(sg(sigma)).squeeze(-1)


# ---- nonlinear PCA: reconstruction in latent space ----


@objective()
def latent(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x[W]sg − h(xWΣ⁻¹)Σ‖²  (nonlinear table, rows 4 to 6; errata: the inverse is meant)."""
    return E(sq(sg(y) - h(y / sigma) * sigma))


@objective({"triangular": "latent_wtw_triangular", "weighted_latent": "main_weighted_latent"})
def latent_wtw(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x[W]sg − h(xWΣ⁻¹)Σ[WᵀW]sg‖²  (nonlinear table, rows 7 and 14)."""
    return E(sq(sg(y) - (h(y / sigma) * sigma) @ sg(W.mT @ W)))


@objective()
def latent_wtw_triangular(x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor) -> Tensor:
    """E‖x[W]sg − h(xWΣ⁻¹)Σ tri([WᵀW]sg)‖²: ordered by index  (paper, latent space, triangular)."""
    return E(sq(sg(y) - (h(y / sigma) * sigma) @ sg(W.mT @ W).triu()))


# ---- sparsity and relative updates written as losses ----


@objective()
def rica(x: Tensor, W: Tensor, y: Tensor, beta: Any, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖² + βE Σ|y|  (nonlinear table, row 19)."""
    return linear(x, W, y) + beta * E(y.abs().sum(-1))


@objective()
def rica_logcosh(x: Tensor, W: Tensor, y: Tensor, beta: Any, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖² + βE Σ log cosh y  (nonlinear table, row 20)."""
    log_cosh = y + torch.nn.functional.softplus(-2 * y) - math.log(2)
    return linear(x, W, y) + beta * E(log_cosh.sum(-1))


@objective(holds_h=True)
def skew_symmetric(x: Tensor, W: Tensor, y: Tensor, h: H, beta: Any, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖² + β·sum(W ⊙ [W(yᵀh(y) − h(y)ᵀy)]sg)  (nonlinear table, row 21)."""
    moment = outer(y, h(y))
    return linear(x, W, y) + beta * (W * sg(W @ (moment - moment.mT))).sum((-2, -1))


@objective(holds_h=True)
def symmetric_off_diagonal(x: Tensor, W: Tensor, y: Tensor, h: H, beta: Any, linear: Linear) -> Tensor:
    """E‖x − xWWᵀ‖² + β·sum(W ⊙ [W(yᵀh(y) − diag(h(y) ⊙ y))]sg)  (nonlinear table, row 22)."""
    return linear(x, W, y) + beta * (W * sg(W @ off_diagonal(outer(y, h(y))))).sum((-2, -1))


@objective(holds_h=True)
def symmetric_off_diagonal_sigma(
    x: Tensor, W: Tensor, y: Tensor, h: H, sigma: Tensor, beta: Any, linear: Linear
) -> Tensor:
    """As row 22 with h(yΣ⁻¹)Σ  (nonlinear table, row 23)."""
    moment = off_diagonal(outer(y, h(y / sigma) * sigma))
    return linear(x, W, y) + beta * (W * sg(W @ moment)).sum((-2, -1))


def ordering_triangle(W: Tensor, y: Tensor, hs: Tensor, sigma: Tensor, form: str) -> Tensor:
    """sum(W ⊙ [W triu(M)]sg) for the six M of the paper; `hs` is h(z).  Gradient: W triu(M)

    (triangular weight update).
    """
    z = y / sigma
    left, right = {
        "hs_h": (hs * sigma, hs),
        "h_hs": (hs, hs * sigma),
        "h_y": (hs, y),
        "y_h": (y, hs),
        "z_y": (z, y),
        "y_z": (y, z),
    }[form]
    return (W * sg(W @ outer(left, right).triu())).sum((-2, -1))
