"""Adam and SGD on the buffers of a fused step: the arithmetic of `optimizers`, without a new array in a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training.arrays import as_rows
from sigmapca_cli.training.optimizers import STATE_NAMES

if TYPE_CHECKING:
    from sigmapca_cli.training.protocols import State

Factor = float | Sequence[float]
"""Factor of the learning rate: one number, or one for each of R runs."""


class Buffers(Protocol):
    """The arrays of a fused step: filters W and gradient g (R·k, p), one scratch array like them, and R."""

    W: np.ndarray
    g: np.ndarray
    tmp: np.ndarray
    runs: int

    def full(self, value: float, *shape: int) -> np.ndarray:
        """Return a new array of this value."""

    def number(self, values: Sequence[float]) -> np.ndarray:
        """Return () where all runs agree, else (R·k, 1)."""


class FusedOptimizer(Protocol):
    """A step on W from the gradient in the buffers; the gradient may be overwritten."""

    def step(self, count: int, factor: Factor) -> None:
        """Make step number `count`, from 1."""


class Rates:
    """The learning rates of R runs."""

    def __init__(self, cfgs: Sequence[Config], buffers: Buffers) -> None:
        self.rates, self.buffers = [float(cfg.lr) for cfg in cfgs], buffers

    def at(self, factor: Factor, scale: float = 1.0) -> float | np.ndarray:
        """Return lr · factor · scale, rounded once: a number where all runs agree, else (R·k, 1)."""
        factors = [factor] * self.buffers.runs if isinstance(factor, int | float) else factor
        rates = [lr * f * scale for lr, f in zip(self.rates, factors, strict=True)]
        return rates[0] if len(set(rates)) == 1 else self.buffers.number(rates)


class FusedSGD:
    """Heavy-ball momentum: b ← μ·b + g; w ← w − lr·b."""

    def __init__(self, cfgs: Sequence[Config], buffers: Buffers, opt_state: State) -> None:
        self.buffers, self.rates = buffers, Rates(cfgs, buffers)
        self.velocity = as_rows(opt_state, "b.W")
        self.momentum = buffers.number([cfg.optimizer.momentum for cfg in cfgs])

    def step(self, count: int, factor: Factor) -> None:
        """Make one step."""
        buffers, rate, velocity = self.buffers, self.rates.at(factor), self.velocity
        np.multiply(velocity, self.momentum, out=velocity)
        np.add(velocity, buffers.g, out=velocity)
        np.multiply(velocity, rate, out=buffers.tmp)
        np.subtract(buffers.W, buffers.tmp, out=buffers.W)


class FusedAdam:
    """Adam: m̂/(√v̂ + ε) = m·√c₂/c₁ / (√v + ε·√c₂), c = 1 − βᵗ."""

    def __init__(self, cfgs: Sequence[Config], buffers: Buffers, opt_state: State) -> None:
        self.buffers, self.rates, self.cfg = buffers, Rates(cfgs, buffers), cfgs[0].optimizer
        self.m, self.v = (as_rows(opt_state, f"{name}.W") for name in STATE_NAMES["adam"])
        number, beta1, beta2 = buffers.number, self.cfg.beta1, self.cfg.beta2
        self.keep1, self.take1 = number([beta1]), number([1 - beta1])
        self.keep2, self.take2 = number([beta2]), number([1 - beta2])
        self.epsilon, self.scale = buffers.full(0), buffers.full(0)

    def step(self, count: int, factor: Factor) -> None:
        """Make step number `count`, from 1."""
        buffers = self.buffers
        g, tmp, m, v = buffers.g, buffers.tmp, self.m, self.v
        root = (1 - self.cfg.beta2**count) ** 0.5
        rate = self.rates.at(factor, root / (1 - self.cfg.beta1**count))
        self.epsilon[...] = self.cfg.epsilon * root
        if isinstance(rate, float):
            self.scale[...] = rate
            rate = self.scale
        np.multiply(m, self.keep1, out=m)
        np.multiply(g, self.take1, out=tmp)
        np.add(m, tmp, out=m)
        np.multiply(g, g, out=g)
        np.multiply(g, self.take2, out=g)
        np.multiply(v, self.keep2, out=v)
        np.add(v, g, out=v)
        np.sqrt(v, out=tmp)
        np.add(tmp, self.epsilon, out=tmp)
        np.divide(m, tmp, out=tmp)
        np.multiply(tmp, rate, out=tmp)
        np.subtract(buffers.W, tmp, out=buffers.W)


def fused_optimizer(cfgs: Sequence[Config], buffers: Buffers, opt_state: State) -> FusedOptimizer:
    """Return the optimizer of these runs, which all have the same one."""
    kind = FusedAdam if cfgs[0].optimizer.name == "adam" else FusedSGD
    return kind(cfgs, buffers, opt_state)
