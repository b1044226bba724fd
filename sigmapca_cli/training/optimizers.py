"""Optimizers as functions on tensors: one run has no leading dimension, a sweep of R runs has one.

State is a flat dictionary of tensors, so that a checkpoint is that dictionary and nothing else.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor


def tangent(gradient: Tensor, W: Tensor) -> Tensor:
    """Remove the radial part of each column: G ← G − w(wᵀg)/(wᵀw).

    This is the Riemannian gradient on a product of spheres. At the solution of the main loss the gradient of a
    filter is parallel to the filter; Adam's per-entry scaling would turn that radial gradient into a tangential
    one and drift away. `gradient` and `W` are (…, p, k).
    """
    radial = (W * gradient).sum(-2, keepdim=True) / (W * W).sum(-2, keepdim=True)
    return gradient - W * radial


class Adam:
    """Adam with bias correction: w ← w − lr·m̂/(√v̂ + ε); m, v are biased moving moments of the gradient."""

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-7) -> None:
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def start(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Zero moments for every parameter."""
        slots = {}
        for name, value in parameters.items():
            slots[f"m.{name}"] = torch.zeros_like(value)
            slots[f"v.{name}"] = torch.zeros_like(value)
        return slots

    def step(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        slots: dict[str, Tensor],
        count: int,
        lr: float | Tensor,
    ) -> None:
        """One step in place; `count` starts at 1; `lr` is a number, or (R, 1, 1) for R runs."""
        correction1, correction2 = 1 - self.beta1**count, 1 - self.beta2**count
        for name, gradient in gradients.items():
            m, v = slots[f"m.{name}"], slots[f"v.{name}"]
            m.lerp_(gradient, 1 - self.beta1)
            v.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
            scale = v.sqrt().div_(math.sqrt(correction2)).add_(self.epsilon)
            if isinstance(lr, Tensor):
                rate = fit_rate(lr, parameters[name])
                parameters[name].sub_(m.div(scale).mul_(rate / correction1))
            else:
                parameters[name].addcdiv_(m, scale, value=-lr / correction1)


class SGD:
    """Heavy-ball momentum: b ← μ·b + g; w ← w − lr·b."""

    def __init__(self, momentum: float = 0.9) -> None:
        self.momentum = momentum

    def start(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Zero velocity for every parameter."""
        return {f"b.{name}": torch.zeros_like(value) for name, value in parameters.items()}

    def step(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        slots: dict[str, Tensor],
        count: int,
        lr: float | Tensor,
    ) -> None:
        """One step in place; `lr` is a number, or (R, 1, 1) for R runs."""
        for name, gradient in gradients.items():
            velocity = slots[f"b.{name}"].mul_(self.momentum).add_(gradient)
            if isinstance(lr, Tensor):
                parameters[name].sub_(velocity * fit_rate(lr, parameters[name]))
            else:
                parameters[name].sub_(velocity, alpha=lr)


Optimizer = Adam | SGD


def fit_rate(lr: Tensor, parameter: Tensor) -> Tensor:
    """Give one rate per run, (R,) or (R, 1, 1), as many trailing dimensions as the parameter has."""
    return lr.reshape(-1, *([1] * (parameter.dim() - 1)))


def build(cfg) -> Optimizer:
    """The optimizer that a configuration's `optimizer` group names."""
    if cfg.name == "sgd":
        return SGD(cfg.momentum)
    return Adam(cfg.beta1, cfg.beta2, cfg.epsilon)
