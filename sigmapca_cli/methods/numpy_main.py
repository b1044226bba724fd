"""The main method on NumPy arrays. It avoids importing torch (1.5 s), more than a third of a typical run.

`fast_path_applies` says for which configurations the step by hand is exact. The step itself is `FusedStep` in the
training room: for one run and for many, on NumPy's arrays and on a GPU's tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.data.moments.implicit import in_type
from sigmapca_cli.methods.config import refuse_unused
from sigmapca_cli.methods.solution import Solution, deviations, finalise

if TYPE_CHECKING:
    from sigmapca_cli.settings.schema import Config

NONLINEARITIES = ("tanh", "scaled_tanh")
SIGMAS = ("ema", "data", "unit")
State = dict[str, np.ndarray]

# Settings that must have one of these values: the step by hand knows no other.
REQUIRED: dict[str, tuple[Any, ...]] = {
    "model.kind": ("trained",),
    "model.objective": ("main",),
    "model.second": ("none",),
    "model.project": ("none",),
    "model.centring": ("batch",),
    "model.mean": ("batch",),
    "nonlinearity.name": NONLINEARITIES,
    "nonlinearity.derivative": ("true", "one"),
    "sigma.name": SIGMAS,
    "constraint.name": ("unit_norm",),
    "ordering.name": ("none",),
    "solver.name": ("stochastic",),
    "optimizer.name": ("adam", "sgd"),
    "optimizer.schedule": ("constant", "cosine"),
}
# Settings that the step by hand reads, or the loop around it, whatever their value.
READ = {
    "nonlinearity.a", "sigma.momentum", "sigma.epsilon", "sigma.relative", "sigma.start", "optimizer.beta1",
    "optimizer.beta2", "optimizer.epsilon", "optimizer.momentum", "optimizer.tangent", "a", "k", "seed", "epochs",
    "steps", "max_steps", "batch_size", "shuffle_buffer", "lr", "init", "init_file", "dtype", "precision", "device",
    "threads", "log_every", "keep", "rescale", "tol", "ending", "stop", "strict", "log_format", "outputs", "run_dir",
    "if_exists", "recipe", "checkpoint", "data", "model.name", "model.family", "objective", "tracker", "tags", "note",
}  # fmt: skip
# Settings of pieces that the required values above exclude: the composed step does not read them either.
UNUSED = {
    "model.second_constraint", "model.mean_gradient", "model.reconstruction", "model.norm", "model.weights",
    "model.order", "model.ppca_encoder", "ordering.sweep",
    "model.alpha", "model.beta", "model.beta_0", "model.lambda_min", "model.fun",
    "model.max_iter", "model.tolerance", "model.varimax", "nonlinearity.c", "sigma.l2", "ordering.rho",
    "ordering.form", "ordering.weight", "solver",
}  # fmt: skip


def fast_path_applies(cfg: Config) -> bool:
    """Return whether the step by hand computes what the configuration asks for.

    It does for the main loss with a tanh whose a stays, σ by EMA, exact or 1, unit norm, and nothing added. A setting
    that stands in none of the three lists above is one that the step by hand has never heard of: the answer is then no.
    """
    if cfg.regularisers or (isinstance(cfg.nonlinearity.a, str) and cfg.solver.a_from == "sign"):
        return False
    for key, value in settings(cfg):
        if key in REQUIRED:
            if value not in REQUIRED[key]:
                return False
        elif not known(key):
            return False
    return True


def known(key: str) -> bool:
    """Return whether a setting, or its whole group, is read by the step by hand or of no concern to it."""
    group = key.partition(".")[0]
    return key in READ or key in UNUSED or group in READ or group in UNUSED or key == "regularisers"


def settings(cfg: Config) -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of every setting of a configuration."""
    for field in fields(cfg):
        value = getattr(cfg, field.name)
        if is_dataclass(value):
            yield from ((f"{field.name}.{inner.name}", getattr(value, inner.name)) for inner in fields(value))
        else:
            yield field.name, value


@dataclass(frozen=True)
class NumpyMain:
    """The main loss E‖x − h(xWΣ⁻¹)Σ[Wᵀ]sg‖², Σ constant, on NumPy arrays: state, start, result and gradient of a run.

    `kind` is that of every method that takes steps. Raises nothing: see `fast_path_applies`.
    """

    name: str
    nonlinearity: Any
    sigma: Any
    kind: str = "trained"
    trained: str = "W"
    parameters: tuple[str, ...] = ("W",)
    has_loss: bool = True

    @classmethod
    def build(cls, cfg: Config) -> NumpyMain:
        """Return the method of a configuration that the fast path takes. Raise InputError for an unused setting."""
        refuse_unused(cfg.model)
        return cls(cfg.model.name, cfg.nonlinearity, cfg.sigma)

    def init_state(self, W0: np.ndarray, data_sigma: np.ndarray, a: np.ndarray | None = None) -> State:
        """State before the first step: W0 (p, k) with unit columns; σ (k,) the data's, or 1; a (k,) of a=auto."""
        norm = np.linalg.norm(W0, axis=0)
        at_data = self.sigma.name == "data" or (self.sigma.start == "data" and self.sigma.name != "unit")
        sigma = data_sigma.astype(W0.dtype) if at_data else np.ones_like(norm)
        state = {"W": W0 / np.maximum(norm, np.finfo(W0.dtype).tiny), "sigma": sigma}
        if self.sigma.name == "ema":
            state["variance"] = np.square(sigma)
        if a is not None:
            state["a"] = a.copy()
        return state

    def begin_epoch(self, state: State, covariance: np.ndarray) -> None:
        """σ under the rule `data`: exact over the data of covariance C (p, p)."""
        if self.sigma.name == "data":
            state["sigma"][:] = deviations(state["W"], in_type(covariance, state["W"].dtype))

    def directions(self, state: State) -> np.ndarray:
        """The directions (p, k) whose projections are the components: W."""
        return state["W"]

    def result(self, state: State, covariance: np.ndarray) -> Solution:
        """The Solution; covariance (p, p) of the standardised data, float64."""
        return finalise(
            state["W"], covariance, each={"a": state["a"].astype(np.float64)} if "a" in state else {}
        )

    def scale(self, state: State) -> Any:
        """Return a of h(z) = a·tanh(z/a): a number, or one of each component (k,)."""
        if "a" in state:
            return state["a"].astype(np.float64)
        return 1.0 if self.nonlinearity.name == "tanh" else float(self.nonlinearity.a)
