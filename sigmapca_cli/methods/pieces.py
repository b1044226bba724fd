"""The pieces that a trained method is put together from, and what they make of σ, a and c at a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from sigmapca_cli.methods import automatic, nonlinearities
from sigmapca_cli.methods import sigma as sigma_rules
from sigmapca_cli.methods.config import ModelConfig, NonlinearityConfig, OrderingConfig, SigmaConfig
from sigmapca_cli.methods.notation import rows
from sigmapca_cli.methods.registry import Objective

State = dict[str, Tensor]


@dataclass(frozen=True)
class Pieces:
    """The pieces of one method, all constants. What changes while training is in the state, a dict of tensors."""

    name: str
    model: ModelConfig
    objective: Objective
    second: Objective | None
    nonlinearity: NonlinearityConfig
    sigma: SigmaConfig
    constraint: str
    ordering: OrderingConfig
    terms: dict[str, float]
    kind: str = "trained"
    h_value: Callable[..., Any] = field(default=nonlinearities.identity, repr=False)
    h_graph: Callable[..., Any] = field(default=nonlinearities.identity, repr=False)

    # ---- names in the state ----

    @property
    def trained(self) -> str:
        """The matrix the objective acts on: W, or V when PCA or whitening stands in front."""
        return "W" if self.model.project == "none" else "V"

    @property
    def has_loss(self) -> bool:
        """Whether there is a loss to report; the paper gives some methods as an update only."""
        return self.objective.kind == "loss"

    @property
    def trains_sigma(self) -> bool:
        return self.sigma.name == "trainable"

    @property
    def trains_a(self) -> bool:
        return bool(self.nonlinearity.name == "trainable_scaled_tanh")

    @property
    def sweeps(self) -> bool:
        """Whether the first columns are frozen one after the other."""
        return self.ordering.sweep > 0

    @property
    def draws(self) -> bool:
        """Whether a step draws random numbers: a nested mask."""
        return "mask" in self.objective.needs

    @property
    def automatic_a(self) -> bool:
        return bool(self.nonlinearity.a == "auto")

    # ---- σ, a, c at this step ----

    def current_sigma(self, state: State, y: Tensor, centred: bool = False) -> Tensor:
        """σ (…, k) for this batch under the rule; the EMA in the state is advanced."""
        rule = self.sigma.name
        if rule == "batch":
            state["sigma"].copy_(self.root(sigma_rules.batch_variance(y, centred)))
        elif rule == "ema":
            momentum = self.sigma.momentum
            variance = sigma_rules.ema_update_(state["variance"], y, momentum, centred)
            state["sigma"].copy_(self.root(variance))
        return state["sigma"]

    def root(self, variance: Tensor) -> Tensor:
        """σ from a variance: √(v + ε), or √(v(1 + ε)) where ε is relative."""
        factor, added = self.sigma.grown
        return (variance * factor + added).sqrt()

    def current_a(self, state: State, z: Tensor) -> Any:
        """a: a number, one a component in the state (trained, a sweep's own), or chosen from the data."""
        if "abs_z" in state:
            automatic.advance_(state, z, self.sigma.momentum)
        if "a" in state:
            return rows(state["a"])
        return 1.0 if isinstance(self.nonlinearity.a, str) else self.nonlinearity.a

    @property
    def current_c(self) -> Any:
        return None if self.nonlinearity.c == "adaptive" else self.nonlinearity.c
