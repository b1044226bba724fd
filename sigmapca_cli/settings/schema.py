"""The typed schema of everything in `conf/`: types, ranges, choices and their one-line errors.

The fields of one group live with the room that uses them (`data.config`, `methods.config`); this module
adds the top-level knobs and the optimizer, and registers all of them as Hydra schemas. Only the standard
library is imported here, so that help and completion can read the schema without loading Hydra.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.methods.config import (
    ConstraintConfig,
    ModelConfig,
    NonlinearityConfig,
    OrderingConfig,
    SigmaConfig,
)
from sigmapca_cli.settings.checks import as_text, choice, in_range
from sigmapca_cli.settings.sealed import Sealable
from sigmapca_cli.system.errors import InputError


@dataclass
class OptimizerConfig(Sealable):
    """How a gradient becomes a step."""

    name: str = "adam"
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-7
    momentum: float = 0.9
    tangent: bool = True
    schedule: str = "cosine"

    def __post_init__(self) -> None:
        choice("optimizer.name", self.name, ("adam", "sgd"))
        choice("optimizer.schedule", self.schedule, ("constant", "cosine"))
        in_range("optimizer.beta1", self.beta1, 0, 0.999999)
        in_range("optimizer.beta2", self.beta2, 0, 0.999999999)
        in_range("optimizer.momentum", self.momentum, 0, 0.999999)
        in_range("optimizer.epsilon", self.epsilon, 0, open_low=True)


@dataclass
class SolverConfig(Sealable):
    """Which way the solution is found: stochastic training, Newton steps, fourth moments, or independence itself."""

    name: str = "stochastic"
    tol: float = 1e-5
    max_iterations: int = 200
    polish: bool = False
    lam: Any = 0.1  # moments: weight of the fourth cumulants beside the variances, or auto
    tau: Any = "auto"  # independence: weight of the negentropies beside the variances, or auto
    starts: int = 1  # newton, moments, independence: number of starts; the best solution is kept
    a_from: str = "sign"  # of a=auto: sign, on the way; or at the answer of independence
    clip: float | None = None  # newton, moments, independence: rows are clipped at this quantile of norms

    def __post_init__(self) -> None:
        choice("solver.name", self.name, ("stochastic", "newton", "moments", "independence"))
        self.lam = scale(self.lam, "solver.lam")
        if self.lam == math.inf:
            raise InputError("solver.lam=inf: must be finite; model=lica solver=moments is that limit")
        if self.tau != "auto":
            in_range("solver.tau", self.tau, 0)
        choice("solver.a_from", self.a_from, A_FROM)
        in_range("solver.starts", self.starts, 1, 10_000)
        in_range("solver.clip", self.clip, 0.5, 1)
        in_range("solver.tol", self.tol, 0, open_low=True)
        in_range("solver.max_iterations", self.max_iterations, 1)


@dataclass
class CheckpointConfig(Sealable):
    """When a resumable state is written: every so many seconds, or steps where steps are given."""

    every: float = 60.0
    every_steps: int | None = None

    def __post_init__(self) -> None:
        in_range("checkpoint.every", self.every, 0)
        in_range("checkpoint.every_steps", self.every_steps, 1)


K_WORDS = ("auto", "all", "mdl", "mle")
A_FROM = ("sign", "independence")

OBJECTIVES = ("reconstruction_error", "mcc", "stability", "loss", "unidentified")
MAXIMISED = ("mcc", "stability")
"""The objectives of which more is better; of the others less is."""
TRACKERS = ("tensorboard", "mlflow", "wandb")
LONGEST_TAG = 64

CHOICES: dict[str, tuple[str, ...]] = {
    "init": ("pca", "orthogonal", "moments", "independence", "file"),
    "dtype": ("float32", "float64"),
    "precision": ("highest", "high", "medium"),
    "keep": ("last", "best_loss"),
    "ending": ("none", "full_batch"),
    "stop": ("never", "tol"),
    "log_format": ("auto", "bar", "plain"),
    "if_exists": ("auto", "new", "skip", "resume", "fail"),
}


@dataclass
class Config(Sealable):
    """The resolved configuration of one run."""

    a: Any = 4.0  # scale of the nonlinearity: a number > 0, auto, or inf (solver=newton)
    k: Any = "auto"  # components: how many, a share of the variance (0.95), all, mdl, mle; auto: 32, or all
    seed: int = 0  # start and order of the rows
    epochs: float | None = 3.0  # passes over the data; null: until the run has converged
    steps: int | None = None  # steps in all; overrides epochs
    max_steps: int | None = None  # with neither: at most so many; default: 12000, or 3 passes if more
    batch_size: int = 128
    shuffle_buffer: int | None = None  # rows that an epoch is shuffled through; default: all of them
    lr: float = 0.01  # learning rate
    init: str = "pca"  # pca, orthogonal, moments or independence (the answer of that solver), or file
    init_file: str | None = None  # with init=file: a run, or a (p, k) .npy
    dtype: str = "float32"
    precision: str = "highest"  # of a GPU's float32 products: highest, high (TF32) or medium (bfloat16)
    device: str = "auto"  # auto, cpu, cuda, cuda:1 …
    threads: int | None = None  # of products; default: what suits the size of the problem
    log_every: int = 50  # steps between two stored values
    keep: str = "last"  # the last weights, or best_loss: those of the epoch with the lowest mean loss
    rescale: bool = False  # train on rows of unit mean variance: nothing depends on the unit of the data
    tol: float = 0.1  # converged: radians that a component may still have to go to a stable point
    ending: str = "none"  # none, or full_batch steps where a run of no given length has not converged
    stop: str = "never"  # never, or tol: end as soon as the run has converged
    strict: bool = False  # an unconverged run ends with status 1
    log_format: str = "auto"  # auto: a bar on a terminal, plain lines elsewhere; bar; plain
    outputs: str | None = None  # where run folders go; default $SIGMAPCA_OUTPUTS, else ./outputs
    run_dir: str | None = None  # the folder of this run
    if_exists: str = "auto"  # same run made before: new, skip, resume or fail; auto: new, in a sweep resume
    objective: Any = None  # what a search is led by, one name or a list: see OBJECTIVES
    tracker: Any = None  # curves are shown there too: tensorboard, mlflow, wandb, none, or a list of them
    tags: Any = None  # words to find the run by: one, or a list
    note: str | None = None  # a remark on the run
    recipe: str = "default"
    regularisers: Any = None  # name: weight, or a list of names
    model: ModelConfig = field(default_factory=ModelConfig)
    nonlinearity: NonlinearityConfig = field(default_factory=NonlinearityConfig)
    sigma: SigmaConfig = field(default_factory=SigmaConfig)
    constraint: ConstraintConfig = field(default_factory=ConstraintConfig)
    ordering: OrderingConfig = field(default_factory=OrderingConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    solver: SolverConfig = field(default_factory=SolverConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    data: DataConfig = field(default_factory=DataConfig)

    def __post_init__(self) -> None:
        self.a = scale(self.a)
        self.k = components(self.k)
        in_range("seed", self.seed, 0, 2**63 - 1)
        in_range("epochs", self.epochs, 0, open_low=True)
        in_range("steps", self.steps, 1)
        in_range("max_steps", self.max_steps, 1)
        in_range("batch_size", self.batch_size, 1)
        in_range("shuffle_buffer", self.shuffle_buffer, 1, 2**63 - 1)
        if self.batch_size == 1 and self.model.kind == "trained":
            by_batch = self.model.centring == "batch" or self.sigma.name in ("ema", "batch")
            if by_batch and self.solver.name == "stochastic":
                # Centred on itself one row is zero: every loss would be 0 and nothing would be learned.
                raise InputError("batch_size=1: one row has no variance; give at least 2")
        if self.a == math.inf and self.solver.name != "newton":
            raise InputError("a=inf: only solver=newton knows this limit; for solver=moments leave a out")
        if self.solver.name != "stochastic" and self.model.kind == "direct":
            raise InputError(
                f"solver={self.solver.name}: model={self.model.name} has a solver of its own; leave solver out"
            )
        by_steps = self.solver.name == "stochastic" and self.model.kind == "trained"
        if not by_steps or self.steps or self.epochs is not None or self.keep != "last":
            choice("ending", self.ending, CHOICES["ending"])
            self.ending = "none"  # only a run that trains until it has converged has one
        if not self.chooses_a_first:
            choice("solver.a_from", self.solver.a_from, A_FROM)
            self.solver = replace(self.solver, a_from="sign")
        in_range("lr", self.lr, 0, open_low=True)
        in_range("threads", self.threads, 1, 4096)
        in_range("log_every", self.log_every, 1)
        in_range("tol", self.tol, 0, open_low=True)
        for name, allowed in CHOICES.items():
            choice(name, getattr(self, name), allowed)
        self.objective, self.tracker = words_of(self.objective), words_of(self.tracker)
        for word in self.objective:
            choice("objective", word, OBJECTIVES)
        for word in self.tracker:
            choice("tracker", word, (*TRACKERS, "none"))
        if len(self.tracker) > 1 and "none" in self.tracker:
            raise InputError(f"tracker=[{','.join(self.tracker)}]: none goes with no other; leave it out")
        self.tracker = [word for word in self.tracker if word != "none"]
        self.tags = tags_of(self.tags)
        for name in ("outputs", "run_dir", "init_file"):
            if getattr(self, name) == "":
                raise InputError(f"{name}=: the name is empty; give one, or leave {name} out")
        if self.init == "file" and not self.init_file:
            raise InputError("init=file needs init_file=RUN, or init_file=FILTERS.npy of shape (p, k)")

    @property
    def chooses_a_first(self) -> bool:
        """Whether a=auto can be chosen before the filters are found: by Newton, or for one main loss on the rows."""
        if self.a != "auto" or self.model.family == "linear_ica":
            return False
        own, h = self.model, self.nonlinearity
        pieces = (own.objective, own.second, own.project, h.name, h.derivative)
        return self.solver.name == "newton" or pieces == ("main", "none", "none", "scaled_tanh", "true")


GROUPS = (
    "model", "data", "nonlinearity", "sigma", "constraint", "ordering", "optimizer", "solver", "recipe",
    "experiment",
)  # fmt: skip


def scale(value: Any, name: str = "a") -> float | str:
    """Return the knob a or solver.lam: a number above 0, inf (for the limit of a), or the word auto."""
    if value == "auto":
        return "auto"
    if value in ("inf", math.inf):
        return math.inf
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        in_range(name, value if math.isnan(number) else number, 0, open_low=True, words=("auto",))
    return number


def components(value: Any) -> int | float | str:
    """Return the knob `k`: a whole number, a share between 0 and 1, or a word."""
    if value in K_WORDS:
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        in_range("k", value, 1)
        return value
    if isinstance(value, float) and 0 < value < 1:
        return value
    given = value if isinstance(value, float) else as_text(value)  # 1.0 is not to be shown as 1
    raise InputError(
        f"k={given}: must be a whole number ≥ 1, a share of the variance such as 0.95, or one of "
        f"{', '.join(K_WORDS)}"
    )


def words_of(value: Any) -> list[str]:
    """Return the words of a key that takes one word or a list of them, each once and in their order."""
    if value is None or value == "":
        return []
    each = [value] if isinstance(value, str | int | float) else list(value)
    return list(dict.fromkeys(str(word) for word in each))


def tags_of(value: Any) -> list[str]:
    """Return the tags of a run. Raise InputError for one that is empty, long, or holds a comma or a line break."""
    tags = words_of(value)
    for tag in tags:
        if not tag.strip() or len(tag) > LONGEST_TAG or "," in tag or not tag.isprintable():
            raise InputError(
                f"tags={as_text(tag)!r}: a tag has 1 to {LONGEST_TAG} signs, no comma and no line break; "
                "write tags=[pilot,v2]"
            )
    return tags


def register() -> None:
    """Make the schema known to Hydra: every group of `conf/` is merged into it, so types and keys are checked."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(group="schema", name="config", node=Config)
