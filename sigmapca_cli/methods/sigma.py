"""The rules for σ, the standard deviations that the loss holds constant (paper, mean and variance of data;
EMA).
"""

from __future__ import annotations

import torch
from torch import Tensor


def batch_variance(y: Tensor, centred: bool = False) -> Tensor:
    """var(y) over the batch, about the batch's mean, biased: (…, b, k) -> (…, k).

    `centred`: that mean is zero already. Two passes: torch's own var takes three times as long on the CPU.
    """
    deviation = y if centred else y - y.mean(-2, keepdim=True)
    return deviation.square().mean(-2)


def ema_update_(variance: Tensor, y: Tensor, momentum: float, centred: bool = False) -> Tensor:
    """v ← m·v + (1 − m)·var(y), in place; m weighs the past, the variance is biased (1 and 9 give 1.08
    at 0.99).
    """
    return variance.mul_(momentum).add_(batch_variance(y, centred), alpha=1 - momentum)


def data_sigma(W: Tensor, C: Tensor) -> Tensor:
    """σ_j = √(w_jᵀ C w_j), exact over the data set whose covariance is C (p, p): (…, p, k) -> (…, k)."""
    return ((C.to(W.dtype) @ W) * W).sum(-2).clamp_min(0).sqrt()


def start(rule: str, W: Tensor, sigma_data: Tensor, at_data: bool) -> Tensor:
    """σ before the first step: the data's for `data` (or when asked for), else 1; always 1 for `unit`."""
    shape = (*W.shape[:-2], W.shape[-1])
    if rule == "data" or (at_data and rule != "unit"):
        return sigma_data.to(W.dtype).expand(shape).clone()
    return torch.ones(shape, dtype=W.dtype, device=W.device)
