"""The typed settings of a method's pieces; ranges and choices are checked when an object is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sigmapca_cli.conf_files import choices_of
from sigmapca_cli.errors import InputError
from sigmapca_cli.text import is_finite


def choice(where: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a name that is not one of `allowed`, with the nearest one."""
    if value not in allowed:
        from difflib import get_close_matches

        near = get_close_matches(str(value), allowed, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of: {', '.join(allowed)}"
        raise InputError(f"{where}={value}: unknown; {hint}")


def positive(where: str, value: Any, also: tuple[str, ...] = ()) -> None:
    """Refuse what is neither a finite number above zero nor one of the words in `also`."""
    if isinstance(value, str) and value in also:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_finite(value) or value <= 0:
        words = "".join(f", or {word}" for word in also)
        raise InputError(f"{where}={str(value)[:40]}: must be a number above 0{words}")


def finite(where: str, value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is not a finite number in [low, high]."""
    bad = isinstance(value, bool) or not isinstance(value, (int, float)) or not is_finite(value)
    if bad or not low <= value <= high:
        span = "a finite number" if low == -math.inf and high == math.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{where}={str(value)[:40]}: must be {span}")


SCALED = {"scaled_tanh", "trainable_scaled_tanh", "hard_tanh"}
"""The nonlinearities that have a scale a; the choices themselves are the files of `conf/nonlinearity`."""
SIGMAS = ("batch", "ema", "data", "trainable", "unit")
CONSTRAINTS = ("none", "unit_norm", "symmetric", "gram_schmidt", "weight_norm", "weight_unit_norm")
ORDERINGS = (
    "none",
    "triangular",
    "weighted_latent",
    "deflation",
    "nested_dropout",
    "hierarchical",
    "gram_schmidt_regulariser",
)
TRIANGLE_FORMS = ("y_z", "z_y", "y_h", "h_y", "h_hs", "hs_h")
CENTRINGS = ("batch", "data", "noncentred", "noncentred_mean")
MEAN_GRADIENTS = ("inner", "both", "none")
MEANS = ("batch", "ema")
RECONSTRUCTIONS = ("tied", "subspace")
NORMS = ("spectral", "frobenius", "nuclear")
WEIGHTS = ("linear", "variances")
ORDERS = ("filters", "mixing", "negentropy")
PPCA_ENCODERS = ("unit", "printed")


@dataclass
class ModelConfig:
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
        choice("model.kind", self.kind, ("trained", "direct"))
        choice("model.centring", self.centring, CENTRINGS)
        choice("model.mean_gradient", self.mean_gradient, MEAN_GRADIENTS)
        choice("model.mean", self.mean, MEANS)
        choice("model.reconstruction", self.reconstruction, RECONSTRUCTIONS)
        choice("model.norm", self.norm, NORMS)
        choice("model.weights", self.weights, WEIGHTS)
        choice("model.order", self.order, ORDERS)
        choice("model.ppca_encoder", self.ppca_encoder, PPCA_ENCODERS)
        choice("model.project", self.project, ("none", "pca", "whiten"))
        choice("model.second_constraint", self.second_constraint, CONSTRAINTS)
        choice("model.fun", self.fun, ("logcosh", "exp", "cube"))
        finite("model.alpha", self.alpha)
        if self.beta != "input_norm":
            finite("model.beta", self.beta)
        finite("model.beta_0", self.beta_0)
        finite("model.lambda_min", self.lambda_min, 1e-6, 1.0)
        positive("model.max_iter", self.max_iter)
        positive("model.tolerance", self.tolerance)


@dataclass
class NonlinearityConfig:
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
            positive("nonlinearity.a", self.a, ("auto",))
        positive("nonlinearity.c", self.c, ("adaptive",))


LEAST_VARIANCE = 1e-30
"""Added under the root where ε is relative: a component without variance divides by no zero."""


@dataclass
class SigmaConfig:
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
        finite("sigma.momentum", self.momentum, 0.0, 1.0)
        finite("sigma.epsilon", self.epsilon, 0.0)
        finite("sigma.l2", self.l2, 0.0)


@dataclass
class ConstraintConfig:
    """What is done to W after each step."""

    name: str = "unit_norm"

    def __post_init__(self) -> None:
        choice("constraint", self.name, CONSTRAINTS)


@dataclass
class OrderingConfig:
    """How components are ordered by index while training."""

    name: str = "none"
    rho: float = 0.9  # nested dropout: p(j) ∝ ρʲ
    form: str = "y_z"  # triangular: the matrix whose triangle is taken
    weight: float = 1.0  # triangular, gram_schmidt_regulariser
    sweep: int = 0  # nested dropout: steps after which one more of the first columns is frozen; 0: none ever

    def __post_init__(self) -> None:
        choice("ordering", self.name, ORDERINGS)
        choice("ordering.form", self.form, TRIANGLE_FORMS)
        finite("ordering.weight", self.weight)
        if isinstance(self.sweep, bool) or not isinstance(self.sweep, int) or self.sweep < 0:
            raise InputError(
                f"ordering.sweep={self.sweep}: must be a whole number of steps, 0 for no sweeping"
            )
        if not isinstance(self.rho, (int, float)) or not 0 < self.rho < 1:
            raise InputError(f"ordering.rho={self.rho}: must lie between 0 and 1")
