"""The weight updates ΔW that the paper gives without a loss: (x (…, b, p), W (…, p, k), y = xW, …) -> ΔW (…,
p, k).

Means over the batch; the caller steps along +ΔW. Where the paper prints a lower triangle the upper one
stands here: column j of W is corrected by the columns before it, so that index 0 gets the largest variance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
