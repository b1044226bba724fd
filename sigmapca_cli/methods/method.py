"""A method composed of its pieces: state, gradient, constraint, result. Everything that changes lives in the
state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.data.moments.implicit import as_covariance
from sigmapca_cli.methods import automatic, closed_form, composition, constraints, nonlinearities, ordering
from sigmapca_cli.methods import sigma as sigma_rules
from sigmapca_cli.methods.check import check, normalise_regularisers
from sigmapca_cli.methods.implicit_tensor import leading_axes, tensor_of
from sigmapca_cli.methods.notation import rows
from sigmapca_cli.methods.pieces import Pieces, State
from sigmapca_cli.methods.solution import Solution, deviations, finalise, mixing_norms

if TYPE_CHECKING:
    from sigmapca_cli.settings.schema import Config

Gradients = dict[str, Tensor]

SMALLEST_SIGMA = 1e-3
"""A trained σ is clamped to this after each step (errata 5): a log parametrisation would grow exponentially
under Adam where the paper's loss lets σ grow, a clamp keeps its linear growth. A trained a is treated
alike."""
SMALLEST_A = 1e-2


@dataclass(frozen=True)
class Method(Pieces):
    """A trained method. Tensors may carry leading dimensions, one for a sweep of runs; each run's
    gradient is its own.
    """

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names in the state that the optimizer moves, the filters first."""
        extra = ["V"] if self.second else []
        extra += ["sigma"] if self.trains_sigma else []
        extra += ["a"] if self.trains_a else []
        return (self.trained, *extra)

    @property
    def tangent_parameters(self) -> tuple[str, ...]:
        """Those whose columns are held at unit norm: only their gradients may be made tangent to the
        spheres.
        """
        first = [self.trained] if self.constraint in constraints.UNIT_NORM else []
        second = ["V"] if self.second and self.model.second_constraint in constraints.UNIT_NORM else []
        return (*first, *second)

    # ---- state ----

    def init_state(
        self,
        W0: Tensor,
        data_sigma: Tensor,
        generator: torch.Generator | None = None,
        a: Tensor | None = None,
    ) -> State:
        """State before the first step. W0 (…, p, k), data_sigma (…, k) the data's std of xW0.

        a (…, k): what a=auto was chosen to be before; None: it is chosen at each step.
        """
        state: State = {"W": W0.clone()}
        k = W0.shape[-1]
        if self.trained == "V" or self.second:
            start = torch.randn(*W0.shape[:-2], k, k, generator=generator, dtype=W0.dtype, device=W0.device)
            state["V"] = constraints.gram_schmidt(start)
        if self.trained == "V":
            state["scale"] = torch.ones_like(W0[..., 0, :])
        W = state[self.trained]
        at_data = self.sigma.start == "data" and self.trained == "W"
        state["sigma"] = sigma_rules.start(self.sigma.name, W, data_sigma, at_data)
        if self.sigma.name == "ema":
            state["variance"] = state["sigma"].square()
        if self.trains_a:
            first = 4.0 if self.automatic_a else float(self.nonlinearity.a)
            state["a"] = torch.full_like(state["sigma"], first)
        if a is not None:
            state["a"] = a.clone()
        elif self.automatic_a:
            state.update(automatic.start(state["sigma"]))
            if self.second:
                # The components of the second layer are others, and follow their own statistic.
                state.update({f"V.{n}": v for n, v in automatic.start(state["sigma"]).items()})
        if self.model.mean == "ema":
            state["mean"] = torch.zeros_like(W0[..., :, 0])
        self.constrain(state)
        if self.sweeps:
            state.update(ordering.start(state[self.trained]))
        return state

    def begin_epoch(self, state: State, covariance: Tensor | np.ndarray) -> None:
        """Refresh what is exact over the data of covariance C (p, p): σ under the rule `data`, and
        the projection.
        """
        C = tensor_of(covariance)
        if self.trained == "V":
            values, leading = leading_axes(C, state["W"].shape[-1])
            state["W"].copy_(leading.expand_as(state["W"]).to(state["W"]))
            if self.model.project == "whiten":
                floor = float(values[0].clamp_min(0)) * 1e-12 + 1e-300
                deviation = values.clamp_min(floor).sqrt()
                state["scale"].copy_(deviation.expand_as(state["scale"]).to(state["scale"]))
        if self.sigma.name == "data":
            W = self.effective(state[self.trained])
            if self.trained == "V":
                W = self.projection(state) @ W
            state["sigma"].copy_(sigma_rules.data_sigma(W, C))

    def projection(self, state: State) -> Tensor:
        """P (…, p, k) in front of V: the leading eigenvectors, divided by their std when whitening."""
        return state["W"] / rows(state["scale"])

    def effective(self, W: Tensor) -> Tensor:
        """The filters that a parameter stands for: W/‖W‖ under weight_norm, else W itself."""
        return constraints.unit_norm(W) if self.constraint == "weight_norm" else W

    def directions(self, state: State) -> Tensor:
        """The directions (…, p, k) whose projections are the components now: W, PV behind a projection P, or
        WΣ⁻¹V for two layers. These, not W alone, are to be compared with true sources."""
        W = self.effective(state[self.trained])
        if self.trained == "V":
            return self.projection(state) @ W
        return (W / rows(state["sigma"])) @ state["V"] if self.second else W

    # ---- one step ----

    def gradient(
        self,
        state: State,
        x: Tensor,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Gradients]:
        """Loss (…), nan where the paper gives an update only, and the gradient of every parameter
        (−ΔW of an update).

        x (b, p) or (…, b, p). Advances what follows the data in the state (EMA of σ, statistics of a), in place.
        """
        if self.trained == "V":
            with torch.no_grad():
                x = x @ self.projection(state)
        if self.closed:
            with torch.no_grad():
                loss, grads = self._by_hand(state, x)
        else:
            loss, grads = self._by_autograd(state, x, generator)
        if self.constraint in constraints.PARAMETRISED:
            grads[self.trained] = constraints.weight_norm_gradient(state[self.trained], grads[self.trained])
        if self.sweeps:
            W, every = state[self.trained], self.ordering.sweep
            grads[self.trained] = ordering.advance_(state, W, grads[self.trained], every)
        return loss, grads

    @property
    def closed(self) -> bool:
        """Whether the gradient by hand covers this composition: the main loss and nothing else."""
        plain = self.objective.name == "main" and not self.terms and self.second is None
        plain = plain and self.model.mean == "batch" and not self.sweeps
        return plain and self.ordering.name == "none" and not (self.trains_sigma or self.trains_a)

    def _by_hand(self, state: State, x: Tensor) -> tuple[Tensor, Gradients]:
        W = self.effective(state[self.trained])
        y = x @ W
        by_batch = self.model.centring == "batch"
        if by_batch:
            y.sub_(y.mean(-2, keepdim=True))
        sigma = rows(self.current_sigma(state, y, by_batch))
        z = y / sigma
        h, dh = self.h_value(z, self.current_a(state, z), self.current_c)
        # An identity h is z itself, which the closed form overwrites: it is not needed again.
        loss, grad = closed_form.main_gradient(x, W, y, sigma, h, dh, not by_batch)
        return loss, {self.trained: grad}

    def _by_autograd(
        self, state: State, x: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Gradients]:
        if self.model.mean == "ema":
            # μ ← m·μ + (1 − m)·x̄ (paper, EMA); the start at zero is ours.
            momentum = self.sigma.momentum
            state["mean"].mul_(momentum).add_(x.mean(-2), alpha=1 - momentum)
            x = x - rows(state["mean"])
        elif self.model.centring == "batch":
            x = x - x.mean(-2, keepdim=True)
        leaves = {name: state[name].detach().clone().requires_grad_() for name in self.parameters}
        # weight_norm's Jacobian is applied by hand to the gradient of the effective filters.
        leaves[self.trained] = self.effective(state[self.trained]).detach().clone().requires_grad_()
        with torch.enable_grad():
            loss, update = composition.evaluate(self, state, leaves, x, generator)
            names = list(leaves)
            found: tuple[Tensor | None, ...] = (None,) * len(names)
            if loss.requires_grad:
                found = torch.autograd.grad(loss.sum(), [leaves[n] for n in names], allow_unused=True)
        grads = {n: torch.zeros_like(state[n]) if g is None else g for n, g in zip(names, found, strict=True)}
        loss = loss.detach()
        if update is not None:
            grads[self.trained] = grads[self.trained] - update
            loss = torch.full_like(loss, torch.nan)
        return loss, grads

    # ---- after a step, and at the end ----

    def constrain(self, state: State) -> None:
        """Apply the constraints in place."""
        with torch.no_grad():
            fn = constraints.REGISTRY[self.constraint]
            if fn is not constraints.none:
                state[self.trained].copy_(fn(state[self.trained]))
            if "held" in state:
                ordering.hold_(state, state[self.trained], self.ordering.sweep)
            if self.second:
                state["V"].copy_(constraints.REGISTRY[self.model.second_constraint](state["V"]))
            if self.trains_sigma:
                state["sigma"].clamp_(min=SMALLEST_SIGMA)
            if self.trains_a:
                state["a"].clamp_(min=SMALLEST_A)

    def result(self, state: State, covariance: Tensor | np.ndarray) -> Solution:
        """The Solution of one run (no leading dimension); covariance (p, p) of the standardised
        data, float64.
        """
        C = as_covariance(covariance)
        values = {name: np.asarray(v.detach().cpu(), np.float64) for name, v in state.items()}
        # One number a component, in the order of training: they are sorted with the components.
        each = {"a": values["a"]} if "a" in values and values["a"].ndim else {}
        each |= {"trained_sigma": values["sigma"]} if self.trains_sigma else {}
        if self.ordering.name != "none" and self.second is None:
            each["index"] = np.arange(values[self.trained].shape[-1], dtype=np.float64)
        if self.trained == "W":
            W = self.effective(state["W"].detach()).cpu().numpy()
            if self.second is None:
                return finalise(W, C, each=each)
            # The components are those of the second layer: its a is theirs, the trained σ that of the filters.
            by_sigma = np.argsort(-deviations(W.astype(np.float64), C), kind="stable")
            extra = {"trained_sigma": each.pop("trained_sigma")[by_sigma]} if self.trains_sigma else {}
            each |= {"a": values["V.a"]} if "V.a" in values else {}
            rank = mixing_norms if self.model.order == "mixing" else None
            return finalise(W, C, values["V"], extra=extra, each=each, rank=rank)
        rank = mixing_norms if self.model.order == "mixing" else None
        V = self.effective(state["V"].detach()).cpu().numpy()
        if self.model.project == "pca":
            # finalise takes B = WΣ⁻¹V; here y = xEV, so the std goes into V.
            V = deviations(values["W"], C)[:, None] * V
        return finalise(values["W"], C, V, each=each, rank=rank)


def make_method(cfg: Config) -> Any:
    """The method of a whole configuration (cfg.model, .nonlinearity, .sigma, .constraint, .ordering,
    .regularisers).

    Returns a Method (kind "trained") or a direct.DirectMethod (kind "direct"). Raises InputError, one
    line, where the pieces make no sense together.
    """
    if cfg.model.kind == "direct":
        from sigmapca_cli.methods.direct import DirectMethod

        return DirectMethod.build(cfg)
    terms = normalise_regularisers(cfg.regularisers)
    objective, second = check(cfg, terms)
    h = nonlinearities.REGISTRY[cfg.nonlinearity.name]
    one = cfg.nonlinearity.derivative == "one"
    return Method(
        name=cfg.model.name,
        model=cfg.model,
        objective=objective,
        second=second,
        nonlinearity=cfg.nonlinearity,
        sigma=cfg.sigma,
        constraint=cfg.constraint.name,
        ordering=cfg.ordering,
        terms=terms,
        h_value=nonlinearities.derivative_one_value(h) if one else h,
        h_graph=nonlinearities.derivative_one(h) if one else h,
    )
