"""Means over a batch that is spread over processes, and the mean and principal axes of rows that come in parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def batch_mean(v: Tensor, sync: bool) -> Tensor:
    """Return the mean over the rows of the whole batch, (b, m) -> (1, m); gradients flow through it.

    `sync`: average over all processes, which must hold equally many rows, as samplers of torch give them.
    """
    mean = v.mean(0, keepdim=True)
    if not (sync and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return mean
    total: Tensor = SumOfProcesses.apply(mean)  # type: ignore[no-untyped-call]
    return total / dist.get_world_size()


class SumOfProcesses(torch.autograd.Function):
    """The sum of a tensor over all processes; its gradient is the sum of the gradients of all processes."""

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        total = v.detach().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


def moments_of(rows: Tensor | Iterable[Tensor], p: int) -> tuple[Tensor, Tensor]:
    """Return the mean (p,) and the covariance (p, p), divided by n, of rows (n, p), whole or in parts; float64.

    Raise ValueError for rows of another width, for no two rows, and for values that are not finite.
    """
    n, mean, second = 0, torch.zeros(p, dtype=torch.float64), torch.zeros(p, p, dtype=torch.float64)
    for part in [rows] if isinstance(rows, Tensor) else rows:
        if part.shape[-1] != p:
            raise ValueError(f"init_pca: rows of {part.shape[-1]} features, this layer has {p}")
        x = part.detach().reshape(-1, p).to("cpu", torch.float64)
        if not len(x):
            continue
        own = x.mean(0)
        shift, total = own - mean, n + len(x)
        second += (x - own).T @ (x - own) + torch.outer(shift, shift) * (n * len(x) / total)
        mean, n = mean + shift * (len(x) / total), total
    if n < 2:
        raise ValueError(f"init_pca: {n} rows have no variance; give at least 2")
    if not torch.isfinite(second).all():
        raise ValueError("init_pca: the rows hold NaN or infinite values")
    return mean, second / n


def leading(covariance: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues (k,) of a covariance (p, p), and their eigenvectors (p, k).

    Raise ValueError if fewer than k directions have variance.
    """
    values, vectors = torch.linalg.eigh(covariance)
    values, vectors = values.flip(0), vectors.flip(1)
    rank = int((values > values[0].clamp_min(0) * len(values) * torch.finfo(values.dtype).eps).sum())
    if rank < k:
        raise ValueError(f"init_pca: {k} components, but the rows have variance in {rank} directions only")
    return values[:k], vectors[:, :k]
