"""Gradient sweeping: nested dropout that freezes its first columns one after the other (paper; Rippel and others 2014).

The paper freezes an index "once it has converged" and names no criterion. Here one more column is frozen every
`ordering.sweep` steps, up to the last but one.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
