"""The paper's notation as functions, named once so that the losses read as they are printed."""

from __future__ import annotations

import torch
from torch import Tensor

sg = torch.Tensor.detach
"""[·]sg, the stop gradient: the value is kept, its gradient is zero."""


def E(rows: Tensor) -> Tensor:
    """Expectation: mean over the batch of one number a row, (…, b) -> (…)."""
    return rows.mean(-1)


def sq(v: Tensor) -> Tensor:
    """‖v‖² of each row: sum over the features, (…, b, p) -> (…, b)."""
    return v.square().sum(-1)


def frobenius(M: Tensor) -> Tensor:
    """‖M‖²_F, (…, r, c) -> (…)."""
    return M.square().sum((-2, -1))


def outer(u: Tensor, v: Tensor) -> Tensor:
    """E(uᵀv): mean over the batch of the outer products, (…, b, r), (…, b, c) -> (…, r, c)."""
    return u.mT @ v / u.shape[-2]


def rows(v: Tensor) -> Tensor:
    """(…, k) -> (…, 1, k), to stand beside (…, b, k)."""
    return v[..., None, :]


def eye_like(M: Tensor) -> Tensor:
    """I of the size of a square M."""
    return torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)


def off_diagonal(M: Tensor) -> Tensor:
    """M with its diagonal set to zero."""
    return M - torch.diag_embed(M.diagonal(dim1=-2, dim2=-1))


def strict_upper(M: Tensor) -> Tensor:
    """tri₋ where M multiplies W from the right: column j is changed by the columns i < j only."""
    return M.triu(1)


def strict_lower(M: Tensor) -> Tensor:
    """tri₋ of Wᵀ[W]sg: row i, through which the gradient flows, sees the columns j < i only."""
    return M.tril(-1)


def per_run(value: float | Tensor, dims: int) -> float | Tensor:
    """A hyper-parameter of shape (…) made to broadcast against (…, and `dims` more)."""
    return value[(..., *(None,) * dims)] if isinstance(value, Tensor) else value


def linear_weights(k: int, smallest: float, like: Tensor) -> Tensor:
    """λ, linear from 1 down to `smallest`: decreasing, so that index 0 gets the largest variance."""
    return torch.linspace(1.0, smallest, k, dtype=like.dtype, device=like.device)


def batch_mean(v: Tensor) -> Tensor:
    """Return the mean over the rows of the batch, (…, b, k) -> (…, 1, k); gradients flow through it."""
    return v.mean(-2, keepdim=True)
