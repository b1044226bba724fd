"""One run while it trains: its arrays, its step, and what it works out at the end of a window or an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.errors import RunFailed
from sigmapca_cli.training.arrays import Array, as_numpy, copy_of, made_like
from sigmapca_cli.training.batches import Batches
from sigmapca_cli.training.convergence import Convergence
from sigmapca_cli.training.ending import applies
from sigmapca_cli.training.length import rate_factor, stage_of, stages
from sigmapca_cli.training.optimizers import zero_state
from sigmapca_cli.training.protocols import State, TrainedMethod

# Names in a checkpoint of what the loop remembers; they stand there beside the optimizer state.
STORED = {
    "epoch_start": "epoch.W", "epoch_before": "epoch.before", "loss_sums": "epoch.loss", "ending": "ending"
}  # fmt: skip
BEST = "best."


@dataclass
class Memory:
    """What a run remembers of earlier steps for its figures; nothing of it changes a step.

    epoch_start, epoch_before: the trained matrix when this epoch and the one before began. loss_sums (3,): sum and
    number of the losses of this epoch, and the lowest mean loss of an epoch. best: the state of that epoch. ending
    (1,): number of full-batch steps at the end.
    """

    epoch_start: Array | None = None
    epoch_before: Array | None = None
    loss_sums: Array | None = None
    ending: Array | None = None
    best: State = field(default_factory=dict)

    def named(self) -> State:
        """Return the arrays by their names in a checkpoint."""
        single = {name: getattr(self, own) for own, name in STORED.items() if getattr(self, own) is not None}
        return single | {BEST + name: value for name, value in self.best.items()}

    @classmethod
    def from_named(cls, arrays: State) -> Memory:
        """Return the memory that `named` came from; other names are left out."""
        best = {n.removeprefix(BEST): v for n, v in arrays.items() if n.startswith(BEST)}
        return cls(**{own: arrays.get(name) for own, name in STORED.items()}, best=best)


@dataclass
class Hooks:
    """Callbacks of one run, called between steps.

    log gets the step and its figures at the end of a window; measure works figures out from a state; finished says
    whether the run may end here; end is called after the last step of all; contained is entered around all of these,
    and may keep an error to itself.
    """

    log: Callable[[int, dict[str, float]], None] = lambda step, figures: None
    measure: Callable[[State], dict[str, float]] = lambda state: {}
    finished: Callable[[Trainer], bool] = lambda trainer: False
    end: Callable[[Trainer], None] = lambda trainer: None
    contained: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass
class Trainer:
    """A run: all that changes is `state`, `opt_state`, `memory`, `step`, `losses` and the random generator.

    A checkpoint holds these. The arrays are NumPy's where the method is the one on arrays, which draws nothing at
    random; else they are torch's. `unit`: the rows were divided by it; losses are reported in the units of the data.
    `losses`: those of the steps since the last window ended.
    """

    cfg: Config
    method: TrainedMethod
    batches: Batches
    state: State
    covariance: Array
    generator: Any = None
    hooks: Hooks = field(default_factory=Hooks)
    step: int = 0
    opt_state: State = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    losses: list[Any] = field(default_factory=list)
    unit: float = 1.0
    chosen: Any = None  # of a=auto: where it was chosen
    assessed: tuple[int, Convergence] | None = None  # the last measurement, and its step
    figures: dict[str, float] = field(default_factory=dict)  # of the last window
    done: bool = False
    failed: bool = False

    def __post_init__(self) -> None:
        self.ends = stages(self.cfg, self.batches.per_epoch)
        if self.full_batch_ending:
            self.ends = self.ends[:1]
        if not self.opt_state:
            parameters = {name: self.state[name] for name in self.method.parameters}
            self.opt_state = zero_state(self.cfg.optimizer.name, parameters)

    @property
    def full_batch_ending(self) -> bool:
        """Whether full-batch steps take the place of every stage after the first."""
        return applies(self.cfg, self.method, self.batches.source)

    @property
    def full_batch_steps(self) -> int:
        """The number of full-batch steps that were made at the end."""
        return 0 if self.memory.ending is None else int(self.memory.ending[0])

    @property
    def waiting(self) -> bool:
        """Whether the run has steps to make."""
        return not (self.done or self.failed)

    @property
    def total(self) -> int:
        """The step at which the present stage ends."""
        return stage_of(self.ends, self.step)[1]

    @property
    def between_stages(self) -> bool:
        """Whether a stage has ended here and another may follow."""
        return self.step in self.ends[:-1]

    @property
    def work(self) -> float:
        """Multiplications that the steps so far took."""
        return 3.0 * self.step * self.cfg.batch_size * self.batches.source.p * self.cfg.k

    @property
    def factor(self) -> float:
        """Factor of the learning rate at the next step; in every stage it falls from 1 again."""
        start, end = stage_of(self.ends, self.step)
        return rate_factor(self.cfg.optimizer.schedule, self.step - start, end - start)

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, batch within the epoch) of the next step."""
        return divmod(self.step, self.batches.per_epoch)

    @property
    def epoch_ended(self) -> bool:
        """Whether a stage or an epoch ends here. Of thousands of epochs of a few steps only stages count."""
        brief = self.batches.per_epoch < self.cfg.log_every and self.cfg.keep == "last"
        skipped = brief and len(self.ends) > 1 and self.cfg.stop == "never"
        return self.step in self.ends or (not skipped and self.position[1] == 0)

    def begin_epoch(self) -> None:
        """Recompute what is exact over the data, and remember the filters."""
        self.method.begin_epoch(self.state, self.covariance)
        if self.memory.epoch_start is not None:
            self.memory.epoch_before = self.memory.epoch_start
        self.memory.epoch_start = copy_of(self.state[self.method.trained])

    def end_window(self) -> None:
        """Log the mean loss of the window and the other figures. Raise RunFailed if the run has diverged."""
        window = np.asarray(self.losses, np.float64)
        self.losses.clear()
        self.check(window)
        self.figures = {"loss": float(window.mean() * self.unit**2), **self.hooks.measure(self.state)}
        self.keep(window)
        if self.epoch_ended:
            self.figures["filter_change"] = self.change()
        self.hooks.log(self.step, self.figures)

    def change(self) -> float:
        """Return the largest 1 − |cos| between a filter now and an epoch ago; NaN before a whole epoch has passed.

        A last epoch that is cut short is counted together with the one before it.
        """
        start = self.memory.epoch_start if self.position[1] == 0 else self.memory.epoch_before
        if start is None:
            return math.nan
        W, start = (as_numpy(v).astype(np.float64) for v in (self.state[self.method.trained], start))
        norms = np.linalg.norm(W, axis=-2) * np.linalg.norm(start, axis=-2)
        return float(1 - np.abs((W * start).sum(-2) / np.maximum(norms, 1e-30)).min())

    def keep(self, window: np.ndarray) -> None:
        """With keep=best_loss: remember the state at the end of the epoch with the lowest mean loss so far."""
        if self.cfg.keep != "best_loss":
            return
        if self.memory.loss_sums is None:
            self.memory.loss_sums = made_like(self.state["W"], np.array([0.0, 0.0, math.inf]))
        sums = self.memory.loss_sums
        sums[0] += float(window.sum())
        sums[1] += len(window)
        if not self.epoch_ended:
            return
        if sums[0] / sums[1] < sums[2]:
            sums[2] = sums[0] / sums[1]
            self.memory.best = {name: copy_of(value) for name, value in self.state.items()}
        sums[:2] = 0

    def kept(self) -> State:
        """Return the state whose filters are the result: the last, or that of the epoch with the lowest loss."""
        return self.memory.best or self.state

    def check(self, window: np.ndarray) -> None:
        """Raise RunFailed if a loss of the window is not finite, or if a filter is not finite or is zero."""
        # An update rule without a loss reports NaN throughout, which is no divergence.
        bad = ~np.isfinite(window) if self.method.has_loss else np.zeros(len(window), bool)
        # A filter that overflows under a unit norm ends as zero: x / ∞.
        size = np.square(as_numpy(self.state[self.method.trained])).sum(-2)
        if bad.any() or not ((size > 0) & np.isfinite(size)).all():
            step = self.step - len(window) + (int(bad.argmax()) + 1 if bad.any() else len(window))
            raise RunFailed(
                f"diverged at step {step}: {'the loss' if bad.any() else 'a filter'} became NaN, infinite or zero; "
                f"try a smaller lr (now {float(self.cfg.lr):g}) or another optimizer"
            )
