"""One step of any composed method: gradient, tangent projection, optimizer, constraints, on torch's tensors."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods.method import Method
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.batches import Batch

IN_STATE = ("alpha", "beta")  # numbers of cfg.model that stand in the state where they differ between runs


class ComposedStep:
    """What is put together from a configuration; everything that changes is handed in."""

    def __init__(self, cfg: Any, method: Method, generator: torch.Generator) -> None:
        self.method, self.generator, self.lr = method, generator, float(cfg.lr)
        self.optimizer = optimizers.build(cfg.optimizer)
        self.tangent = method.tangent_parameters if cfg.optimizer.tangent else ()
        self.buffers: dict[str, Tensor] = {}

    def step(
        self,
        batch: Batch,
        state: dict[str, Tensor],
        slots: dict[str, Tensor],
        count: int,
        rate: float | Tensor,
    ) -> Tensor:
        """One step in place, the `count`-th, at this learning rate. The loss before it, (), or (R,) for R runs."""
        W = state[self.method.trained]
        x = torch.from_numpy(batch.x).to(device=W.device, dtype=W.dtype)
        loss, gradients = self.method.gradient(state, x, self.generator, self.buffers)
        for name in self.tangent:
            gradients[name] = optimizers.tangent(gradients[name], state[name])
        parameters = {name: state[name] for name in self.method.parameters}
        self.optimizer.step(parameters, gradients, slots, count, rate)
        self.method.constrain(state)
        return loss.detach()


class ComposedSteps(ComposedStep):
    """The steps of R runs on the same batches, as one program with a leading dimension; of one run, without it.

    Numbers that differ become tensors (R,), in the state or in the method. What is drawn at random is drawn once
    for all, as each would have drawn it.
    """

    def __init__(
        self,
        cfgs: Sequence[Any],
        methods: Sequence[Method],
        state: dict[str, Tensor],
        slots: dict[str, Tensor],
        generator: torch.Generator,
    ) -> None:
        super().__init__(cfgs[0], methods[0], generator)
        self.state, self.slots, self.like = state, slots, state["W"]
        self.rates = [float(cfg.lr) for cfg in cfgs]
        self.vary(cfgs, methods)

    def vary(self, cfgs: Sequence[Any], methods: Sequence[Method]) -> None:
        """The numbers that differ between the runs."""
        for name in IN_STATE:
            values = [getattr(c.model, name) for c in cfgs]
            if len(set(values)) > 1:
                self.state[name] = self.each(values)
        scales = [c.nonlinearity.a for c in cfgs]
        if len(set(scales)) > 1 and "a" not in self.state:
            self.state["a"] = self.each(scales)[:, None].expand(-1, self.state["sigma"].shape[-1])
        terms = {n: self.same_or_each([m.terms[n] for m in methods]) for n in methods[0].terms}
        ordering = copy.copy(self.method.ordering)
        for name in ("weight", "rho"):
            setattr(ordering, name, self.same_or_each([getattr(c.ordering, name) for c in cfgs]))
        self.method = replace(self.method, terms=terms, ordering=ordering)

    def each(self, values: Sequence[float]) -> Tensor:
        """One number for each run, (R,)."""
        return self.like.new_tensor([float(v) for v in values])

    def same_or_each(self, values: Sequence[float]) -> Any:
        """The number that all agree on, or (R,)."""
        return values[0] if len(set(values)) == 1 else self.each(values)

    def losses(self, batch: Batch, count: int, factors: Sequence[float]) -> Tensor:
        """One step of every run, (R,); `factors` multiply their learning rates."""
        rates = [lr * f for lr, f in zip(self.rates, factors, strict=True)]
        rate = self.each(rates) if len(rates) > 1 else rates[0]
        return self.step(batch, self.state, self.slots, count, rate)
