"""The main method on NumPy arrays, for runs on a CPU: what `Method` does for the composition that runs for hours.

The import of torch takes longer than a third of such a run. `covers` says which configurations these are; the step
itself is `training.fused`, for one run and for many, here and on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.methods.solution import Solution, deviations, finalise

NONLINEARITIES = ("tanh", "scaled_tanh")
SIGMAS = ("ema", "data", "unit")
State = dict[str, np.ndarray]


def covers(cfg: Any) -> bool:
    """Whether a configuration is the main loss with a tanh of fixed a, σ by EMA or constant, and unit norm.

    Nothing that the catalogue would refuse is covered, so that these need no check of their own.
    """
    model = cfg.model
    return (
        (model.kind, model.objective, model.second, model.project) == ("trained", "main", "none", "none")
        and model.centring == "batch"
        and cfg.solver.name == "stochastic"
        and cfg.ordering.name == "none"
        and not cfg.regularisers
        and cfg.nonlinearity.name in NONLINEARITIES
        and not isinstance(cfg.nonlinearity.a, str)
        and cfg.sigma.name in SIGMAS
        and cfg.constraint.name == "unit_norm"
    )


@dataclass(frozen=True)
class HostMethod:
    """The main loss E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖², Σ constant, on NumPy arrays: state, start, result and gradient of a run.

    `kind` is that of every method that takes steps. Raises nothing: see `covers`.
    """

    name: str
    nonlinearity: Any
    sigma: Any
    kind: str = "trained"
    trained: str = "W"
    parameters: tuple[str, ...] = ("W",)
    has_loss: bool = True

    @classmethod
    def build(cls, cfg: Any) -> HostMethod:
        """The method of a configuration that is covered."""
        return cls(cfg.model.name, cfg.nonlinearity, cfg.sigma)

    def init_state(self, W0: np.ndarray, data_sigma: np.ndarray) -> State:
        """State before the first step: W0 (p, k) with unit columns; σ (k,) the data's, or 1."""
        norm = np.linalg.norm(W0, axis=0)
        at_data = self.sigma.name == "data" or (self.sigma.start == "data" and self.sigma.name != "unit")
        sigma = data_sigma.astype(W0.dtype) if at_data else np.ones_like(norm)
        state = {"W": W0 / np.maximum(norm, np.finfo(W0.dtype).tiny), "sigma": sigma}
        if self.sigma.name == "ema":
            state["variance"] = np.square(sigma)
        return state

    def begin_epoch(self, state: State, covariance: np.ndarray) -> None:
        """σ under the rule `data`: exact over the data of covariance C (p, p)."""
        if self.sigma.name == "data":
            state["sigma"][:] = deviations(state["W"], np.asarray(covariance, state["W"].dtype))

    def directions(self, state: State) -> np.ndarray:
        """The directions (p, k) whose projections are the components: W."""
        return state["W"]

    def result(self, state: State, covariance: np.ndarray) -> Solution:
        """The Solution; covariance (p, p) of the standardised data, float64."""
        return finalise(state["W"], covariance)

    @property
    def a(self) -> float:
        """The scale of h(z) = a·tanh(z/a)."""
        return 1.0 if self.nonlinearity.name == "tanh" else float(self.nonlinearity.a)
