"""Optimizers as functions on tensors: one run has no leading dimension, a sweep of R runs has one.

The optimizer state is a flat dictionary of arrays, so that a checkpoint is that dictionary and nothing else.
`fused_step` makes the same steps by hand on its own buffers; docs/architecture.md names the test that compares them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sigmapca_cli.training.arrays import Array, as_numpy, made_like

if TYPE_CHECKING:
    from torch import Tensor

    from sigmapca_cli.settings.schema import OptimizerConfig

    Named = Mapping[str, Tensor]

STATE_NAMES = {"adam": ("m", "v"), "sgd": ("b",)}
"""What each optimizer remembers of a parameter W: arrays `m.W` and so on in the optimizer state."""


def zero_state(optimizer: str, parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Return the optimizer state before the first step: zeros like every parameter."""
    return {
        f"{slot}.{name}": made_like(value, np.zeros_like(as_numpy(value)))
        for name, value in parameters.items()
        for slot in STATE_NAMES[optimizer]
    }


def tangent(gradient: Tensor, W: Tensor) -> Tensor:
    """Return the gradient without the radial part of each column: G ← G − w(wᵀg)/(wᵀw).

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

    def step(
        self, parameters: Named, gradients: Named, opt_state: Named, count: int, lr: float | Tensor
    ) -> None:
        """Make step number `count`, from 1, in place; `lr` is a number, or (R,) or (R, 1, 1) for R runs."""
        correction1, correction2 = 1 - self.beta1**count, 1 - self.beta2**count
        for name, gradient in gradients.items():
            m, v = opt_state[f"m.{name}"], opt_state[f"v.{name}"]
            m.lerp_(gradient, 1 - self.beta1)
            v.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
            scale = v.sqrt().div_(math.sqrt(correction2)).add_(self.epsilon)
            if isinstance(lr, int | float):
                parameters[name].addcdiv_(m, scale, value=-lr / correction1)
            else:
                rate = fit_rate(lr, parameters[name])
                parameters[name].sub_(m.div(scale).mul_(rate / correction1))


class SGD:
    """Heavy-ball momentum: b ← μ·b + g; w ← w − lr·b."""

    def __init__(self, momentum: float = 0.9) -> None:
        self.momentum = momentum

    def step(
        self, parameters: Named, gradients: Named, opt_state: Named, count: int, lr: float | Tensor
    ) -> None:
        """Make one step in place; `lr` is a number, or (R,) or (R, 1, 1) for R runs."""
        for name, gradient in gradients.items():
            velocity = opt_state[f"b.{name}"].mul_(self.momentum).add_(gradient)
            if isinstance(lr, int | float):
                parameters[name].sub_(velocity, alpha=lr)
            else:
                parameters[name].sub_(velocity * fit_rate(lr, parameters[name]))


Optimizer = Adam | SGD


def fit_rate(lr: Tensor, parameter: Tensor) -> Tensor:
    """Return one rate per run, (R,) or (R, 1, 1), with as many trailing dimensions as the parameter has."""
    return lr.reshape(-1, *([1] * (parameter.dim() - 1)))


def make_optimizer(cfg: OptimizerConfig) -> Optimizer:
    """Return the optimizer that a configuration's `optimizer` group names."""
    if cfg.name == "sgd":
        return SGD(cfg.momentum)
    return Adam(cfg.beta1, cfg.beta2, cfg.epsilon)
