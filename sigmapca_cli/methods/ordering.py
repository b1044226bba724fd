"""Orderings by index: the masks of nested dropout, and gradient sweeping, which freezes its first columns in turn.

Sweeping (paper; Rippel and others 2014) freezes an index "once it has converged", and the paper names no criterion.
Here one more column is frozen every `ordering.sweep` steps, up to the last but one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def nested_mask(
    b: int, k: int, rho: float | Tensor, like: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Masks (b, k), one a row: the first j components are kept, p(j) = ρ^(j−1)(1 − ρ), what lies beyond
    k counts as k. With ρ (R,), one for each run, (R, b, k) from the same draws.
    """
    u = torch.rand(b, 1, generator=generator, dtype=torch.float64, device=like.device)
    log_rho = rho.double().log()[:, None, None] if isinstance(rho, Tensor) else math.log(rho)
    last = (torch.log1p(-u) / log_rho).floor()
    index = torch.arange(k, dtype=torch.float64, device=like.device)
    # The first component is always kept: j ≥ 1.
    return (index <= last).to(like.dtype)


State = dict[str, Tensor]


def start(W: Tensor) -> State:
    """Return the state before the first step: steps made (…,), and the columns as they were frozen (…, p, k)."""
    return {"swept": torch.zeros(W.shape[:-2], dtype=W.dtype, device=W.device), "held": W.clone()}


def frozen(state: State, every: int) -> Tensor:
    """Return which columns are frozen, (…, k)."""
    place = torch.arange(state["held"].shape[-1], device=state["held"].device)
    count = (state["swept"] / every).floor().clamp_max(len(place) - 1)
    return place < count[..., None]


def advance_(state: State, W: Tensor, gradient: Tensor, every: int) -> Tensor:
    """Count one step, hold the columns that it freezes, and return the gradient without those that are frozen."""
    before = frozen(state, every)
    state["swept"].add_(1)
    after = frozen(state, every)
    newly = (after & ~before)[..., None, :]
    state["held"].copy_(torch.where(newly, W, state["held"]))
    return torch.where(after[..., None, :], torch.zeros_like(gradient), gradient)


def hold_(state: State, W: Tensor, every: int) -> None:
    """Put the frozen columns back in place: an optimizer with momentum would move them on."""
    W.copy_(torch.where(frozen(state, every)[..., None, :], state["held"], W))


def widen(mask: Tensor, state: State, every: int) -> Tensor:
    """Return the mask (…, b, k) with the frozen columns kept, and the next one: indices are drawn from there on."""
    fixed = frozen(state, every)
    kept = torch.cat([torch.ones_like(fixed[..., :1]), fixed[..., :-1]], -1)
    return torch.maximum(mask, kept[..., None, :].to(mask.dtype))
