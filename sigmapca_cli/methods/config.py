"""The typed settings of a method's pieces; ranges and choices are checked when an object is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sigmapca_cli.settings.checks import choice, in_range
from sigmapca_cli.settings.conf_files import choices_of
from sigmapca_cli.settings.sealed import Sealable
from sigmapca_cli.system.errors import InputError

SCALED = {"scaled_tanh", "trainable_scaled_tanh", "hard_tanh"}
"""The nonlinearities that have a scale a; the choices themselves are the files of `conf/nonlinearity`."""
SIGMAS = ("batch", "ema", "data", "trainable", "unit")
CONSTRAINTS = ("none", "unit_norm", "symmetric", "gram_schmidt", "weight_norm", "weight_unit_norm")
ORDERINGS = (
    "none", "triangular", "weighted_latent", "deflation", "nested_dropout", "hierarchical", "gram_schmidt_regulariser",
)  # fmt: skip
TRIANGLE_FORMS = ("y_z", "z_y", "y_h", "h_y", "h_hs", "hs_h")
MODEL_CHOICES = {
    "kind": ("trained", "direct"), "centring": ("batch", "data", "noncentred", "noncentred_mean"),
    "mean_gradient": ("inner", "both", "none"), "mean": ("batch", "ema"), "reconstruction": ("tied", "subspace"),
    "norm": ("spectral", "frobenius", "nuclear"), "weights": ("linear", "variances"),
    "order": ("filters", "mixing", "negentropy"), "ppca_encoder": ("unit", "printed"),
    "project": ("none", "pca", "whiten"), "second_constraint": CONSTRAINTS, "fun": ("logcosh", "exp", "cube"),
}  # fmt: skip


@dataclass
class ModelConfig(Sealable):
    """A method: its objective and the numbers in it. `project` puts PCA or whitening in front and trains
    V, not W.
    """

    name: str = "nlpca"
    family: str = "nonlinear_pca"
    objective: str = "main"
    kind: str = "trained"  # trained | direct
    centring: str = "batch"  # batch | data | noncentred | noncentred_mean
    mean_gradient: str = (
        "inner"  # noncentred: which μ_y carries gradient: inner (the subtracted one) | both | none
    )
    mean: str = "batch"  # with centring=batch: the mean of the batch, or its moving average (sigma.momentum)
    reconstruction: str = "tied"  # of linear losses: tied, E‖x − xWWᵀ‖², or subspace, E‖x − x[W]sgWᵀ‖²
    norm: str = "spectral"  # main_scaled_decoder: spectral | frobenius | nuclear norm of Σ
    weights: str = "linear"  # Λ: linear from 1 to lambda_min, or variances, [E y²/max E y²]sg
    order: str = (
        "filters"  # linear ICA, by decreasing std of unit filters | norm of mixing columns | negentropy
    )
    ppca_encoder: str = "unit"  # unit: WΣ⁻¹ of unit variance; printed: U(S − λ²)^-½
    project: str = "none"  # none | pca | whiten
    second: str = "none"  # objective of the second rotation V (linear ICA)
    second_constraint: str = "symmetric"
    alpha: float = 1.0
    beta: Any = 1.0  # a number, or input_norm: beta_0 · E‖x‖₂
    beta_0: float = 1.0
    lambda_min: float = 0.05  # λ runs linearly from 1 down to this
    fun: str = "logcosh"  # fastica: logcosh | exp | cube
    max_iter: int = 1000  # direct methods
    tolerance: float = 1e-6  # direct methods
    varimax: bool = False  # factor_analysis

    def __post_init__(self) -> None:
        for name, allowed in MODEL_CHOICES.items():
            choice(f"model.{name}", getattr(self, name), allowed)
        in_range("model.alpha", self.alpha)
        if self.beta != "input_norm":
            in_range("model.beta", self.beta)
        in_range("model.beta_0", self.beta_0)
        in_range("model.lambda_min", self.lambda_min, 1e-6, 1.0)
        in_range("model.max_iter", self.max_iter, 0, open_low=True)
        in_range("model.tolerance", self.tolerance, 0, open_low=True)


OPTIONS = {
    "mean_gradient": "inner",
    "reconstruction": "linear",
    "norm": "norm",
    "weights": "lam",
    "lambda_min": "lam",
    "alpha": "alpha",
    "beta": "beta",
    "beta_0": "beta",
}
"""Settings of the model that only some objectives read, and the argument by which such an objective asks for them."""


def refuse_unused(model: ModelConfig, needs: tuple[str, ...] = ()) -> None:
    """Raise InputError for a setting that was changed and that nothing reads.

    needs: arguments of the objective (`registry.Objective.needs`); none for the step by hand, solvers and closed forms.
    """
    plain = ModelConfig()
    for name, argument in OPTIONS.items():
        value = getattr(model, name)
        if value != getattr(plain, name) and argument not in needs:
            raise InputError(
                f"model.{name}={value}: model={model.name} does not use it; leave it out, or choose another model"
            )
    if model.ppca_encoder != plain.ppca_encoder and model.name != "ppca":
        raise InputError(f"model.ppca_encoder={model.ppca_encoder}: is for model=ppca; leave it out")


@dataclass
class NonlinearityConfig(Sealable):
    """h; `a` scales tanh and clips hard_tanh, `c` scales asymmetric (a number, or adaptive: 1/std(tanh
    z)).
    """

    name: str = "scaled_tanh"
    a: Any = "${a}"
    c: Any = 1.6
    derivative: str = "true"  # true: h′ as it is; one: h′ := 1

    def __post_init__(self) -> None:
        choice("nonlinearity", self.name, choices_of("nonlinearity"))
        choice("nonlinearity.derivative", str(self.derivative).lower(), ("true", "one"))
        self.derivative = str(self.derivative).lower()
        if self.a not in ("${a}", math.inf):  # inf is solver=newton's; for others `Config` refuses it
            in_range("nonlinearity.a", self.a, 0, open_low=True, words=("auto",))
        in_range("nonlinearity.c", self.c, 0, open_low=True, words=("adaptive",))


LEAST_VARIANCE = 1e-30
"""Added under the root where ε is relative: a component without variance divides by no zero."""


@dataclass
class SigmaConfig(Sealable):
    """σ; momentum and ε (inside the root) of ema and batch, start of ema and trainable, L2 of trainable.

    relative: ε is a share of each component's variance, σ = √(v(1 + ε)); else it is added, σ = √(v + ε).
    """

    name: str = "ema"
    momentum: float = 0.99
    epsilon: float = 1e-3
    relative: bool = False
    start: str = "one"  # one | data
    l2: float = 0.0

    @property
    def grown(self) -> tuple[float, float]:
        """(f, e): σ² = f·v + e."""
        return (1.0 + self.epsilon, LEAST_VARIANCE) if self.relative else (1.0, self.epsilon)

    def __post_init__(self) -> None:
        choice("sigma", self.name, SIGMAS)
        choice("sigma.start", self.start, ("one", "data"))
        in_range("sigma.momentum", self.momentum, 0.0, 1.0)
        in_range("sigma.epsilon", self.epsilon, 0.0)
        in_range("sigma.l2", self.l2, 0.0)


@dataclass
class ConstraintConfig(Sealable):
    """What is done to W after each step."""

    name: str = "unit_norm"

    def __post_init__(self) -> None:
        choice("constraint", self.name, CONSTRAINTS)


@dataclass
class OrderingConfig(Sealable):
    """How components are ordered by index while training."""

    name: str = "none"
    rho: float = 0.9  # nested dropout: p(j) ∝ ρʲ
    form: str = "y_z"  # triangular: the matrix whose triangle is taken
    weight: float = 1.0  # triangular, gram_schmidt_regulariser
    sweep: int = 0  # nested dropout: steps after which one more of the first columns is frozen; 0: none ever

    def __post_init__(self) -> None:
        choice("ordering", self.name, ORDERINGS)
        choice("ordering.form", self.form, TRIANGLE_FORMS)
        in_range("ordering.weight", self.weight)
        if isinstance(self.sweep, bool) or not isinstance(self.sweep, int) or self.sweep < 0:
            raise InputError(
                f"ordering.sweep={self.sweep}: must be a whole number of steps, 0 for no sweeping"
            )
        if not isinstance(self.rho, (int, float)) or not 0 < self.rho < 1:
            raise InputError(f"ordering.rho={self.rho}: must lie between 0 and 1")
