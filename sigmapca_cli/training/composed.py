"""One step of any composed method: gradient, tangent projection, optimizer, constraints, on torch's tensors."""

from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods.method import Method
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.batches import Batch


class ComposedStep:
    """What is put together from a configuration; everything that changes is handed in."""

    def __init__(self, cfg: Any, method: Method, generator: torch.Generator) -> None:
        self.method, self.generator, self.lr = method, generator, float(cfg.lr)
        self.optimizer = optimizers.build(cfg.optimizer)
        self.tangent = method.tangent_parameters if cfg.optimizer.tangent else ()
        self.buffers: dict[str, Tensor] = {}

    def step(
        self, batch: Batch, state: dict[str, Tensor], slots: dict[str, Tensor], count: int, factor: float
    ) -> Tensor:
        """One step in place, the `count`-th; `factor` multiplies the learning rate. The loss before it, ()."""
        W = state[self.method.trained]
        x = torch.from_numpy(batch.x).to(device=W.device, dtype=W.dtype)
        loss, gradients = self.method.gradient(state, x, self.generator, self.buffers)
        for name in self.tangent:
            gradients[name] = optimizers.tangent(gradients[name], state[name])
        parameters = {name: state[name] for name in self.method.parameters}
        self.optimizer.step(parameters, gradients, slots, count, self.lr * factor)
        self.method.constrain(state)
        return loss.detach()
