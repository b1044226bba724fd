"""The nonlinearities h and their derivatives; every function maps z (…, b, k) to (h(z), h′(z)).

`a` and `c` are numbers, or tensors that broadcast against z. A derivative that is 1 everywhere is the number
1.0, so that the hot path can skip the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Pair = tuple[Tensor, Any]
Nonlinearity = Callable[..., Pair]

REGISTRY: dict[str, Nonlinearity] = {}
"""All nonlinearities by name; a function joins by the decorator."""


def nonlinearity(function: Nonlinearity) -> Nonlinearity:
    """Register h under the name of its function, which is the name of its file in `conf/nonlinearity` too."""
    REGISTRY[function.__name__] = function
    return function


@nonlinearity
def tanh(z: Tensor, a: Any = 1.0, c: Any = None) -> Pair:
    """h = tanh z, h′ = 1 − h²  (paper, conventional nonlinear PCA)."""
    h = torch.tanh(z)
    return h, 1 - h * h


@nonlinearity
def scaled_tanh(z: Tensor, a: Any = 4.0, c: Any = None) -> Pair:
    """h = a·tanh(z/a), h′ = 1 − (h/a)²  (paper, choice of nonlinearity)."""
    t = torch.tanh(z / a)
    return a * t, 1 - t * t


REGISTRY["trainable_scaled_tanh"] = scaled_tanh  # the same h; a is a parameter (`pieces`)


@nonlinearity
def hard_tanh(z: Tensor, a: Any = 2.0, c: Any = None) -> Pair:
    """h = clip(z, −a, a), h′ = 1 inside and 0 outside

    (nonlinear table, row 11; errata: clip(z, …), not clip(0, …)).
    """
    h = torch.minimum(torch.maximum(z, z.new_zeros(()) - a), z.new_zeros(()) + a)
    return h, (z.abs() < a).to(z.dtype)


@nonlinearity
def asymmetric(z: Tensor, a: Any = 1.0, c: Any = 1.6) -> Pair:
    """h = c·tanh z, h′ = c(1 − tanh² z); c = None means 1/std(tanh z) over the batch, held constant

    (rows 12, 13). A function c(t) is given t = tanh z, where the batch has more rows than are here.
    """
    t = torch.tanh(z)
    if c is None:
        c = 1 / t.detach().std(-2, correction=0, keepdim=True).clamp_min(1e-12)
    elif callable(c):
        c = c(t.detach())
    return c * t, c * (1 - t * t)


@nonlinearity
def sign(z: Tensor, a: Any = 1.0, c: Any = None) -> Pair:
    """h = sign z, h′ = 0  (the limit of tanh(z/ε); rows 19 and 23)."""
    return torch.sign(z), torch.zeros_like(z)


@nonlinearity
def identity(z: Tensor, a: Any = 1.0, c: Any = None) -> Pair:
    """h = z, h′ = 1: every nonlinear method becomes its linear one."""
    return z, 1.0


def derivative_one(nonlinearity: Nonlinearity) -> Nonlinearity:
    """The same h with h′ := 1, in the closed forms and under autograd alike: z + h([z]sg) − [z]sg.

    A trained a keeps its own gradient ∂h/∂a.
    """

    def modified(z: Tensor, a: Any = 1.0, c: Any = None) -> Pair:
        held = z.detach()
        return z + (nonlinearity(held, a, c)[0] - held), 1.0

    return modified


def derivative_one_value(nonlinearity: Nonlinearity) -> Nonlinearity:
    """h with h′ := 1 where no graph is recorded: the two extra passes over z are saved."""

    def modified(z: Tensor, a: Any = 1.0, c: Any = None) -> Pair:
        return nonlinearity(z, a, c)[0], 1.0

    return modified
