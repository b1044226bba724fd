"""One optimisation step of any method by autograd: gradient, tangent projection, optimizer, constraints."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sigmapca_cli.methods.method import Method
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.batches import Batch

IN_STATE = (
    "alpha",
    "beta",
    "beta_0",
)  # numbers of cfg.model that stand in the state where they differ between runs


class AutogradStep:
    """Steps of R runs on the same batches, as one program with a leading dimension; of one run, without it.

    Numbers that differ between the runs become tensors (R,), in the state or in the method. What is drawn at random is
    drawn once for all runs, as each would have drawn it.
    """

    wants_centred = False

    def __init__(
        self,
        cfgs: Sequence[Config],
        methods: Sequence[Method],
        state: dict[str, Tensor],
        opt_state: dict[str, Tensor],
        generator: torch.Generator,
    ) -> None:
        self.runs, self.method, self.generator = len(cfgs), methods[0], generator
        self.state, self.opt_state, self.like = state, opt_state, state["W"]
        self.rates = [float(cfg.lr) for cfg in cfgs]
        self.optimizer = optimizers.make_optimizer(cfgs[0].optimizer)
        self.tangent = self.method.tangent_parameters if cfgs[0].optimizer.tangent else ()
        self.vary(cfgs, methods)

    def vary(self, cfgs: Sequence[Config], methods: Sequence[Method]) -> None:
        """Put the numbers that differ between the runs into the state or the method."""
        for name in IN_STATE:
            values = [getattr(c.model, name) for c in cfgs]
            if len(set(values)) > 1:
                self.state[name] = self.per_run(values)
        scales = [c.nonlinearity.a for c in cfgs]
        if len(set(scales)) > 1 and "a" not in self.state:
            self.state["a"] = self.per_run(scales)[:, None].expand(-1, self.state["sigma"].shape[-1])
        terms = {n: self.same_or_per_run([m.terms[n] for m in methods]) for n in methods[0].terms}
        ordering = copy.copy(self.method.ordering)
        for name in ("weight", "rho"):
            setattr(ordering, name, self.same_or_per_run([getattr(c.ordering, name) for c in cfgs]))
        self.method = replace(self.method, terms=terms, ordering=ordering)

    def per_run(self, values: Sequence[float]) -> Tensor:
        """Return one number for each run, (R,)."""
        return self.like.new_tensor([float(v) for v in values])

    def same_or_per_run(self, values: Sequence[float]) -> Any:
        """Return the number that all runs agree on, or (R,)."""
        return values[0] if len(set(values)) == 1 else self.per_run(values)

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> Tensor:
        """Make one step of every run; see `protocols.Step`. The loss is that before the step."""
        rates = [lr * f for lr, f in zip(self.rates, factors, strict=True)]
        rate = self.per_run(rates) if len(rates) > 1 else rates[0]
        state, W = self.state, self.state[self.method.trained]
        x = torch.from_numpy(batch.x).to(device=W.device, dtype=W.dtype)
        loss, gradients = self.method.gradient(state, x, self.generator)
        for name in self.tangent:
            gradients[name] = optimizers.tangent(gradients[name], state[name])
        parameters = {name: state[name] for name in self.method.parameters}
        self.optimizer.step(parameters, gradients, self.opt_state, count, rate)
        self.method.constrain(state)
        return loss.detach()
