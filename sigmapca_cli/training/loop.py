"""The training loop: batch, gradient or update, step, constrain, log. Everything else hangs on it from outside."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sigmapca_cli.errors import RunFailed
from sigmapca_cli.methods.host import covers
from sigmapca_cli.training.arrays import Array, as_numpy, copy_of, made_like, stack
from sigmapca_cli.training.batches import Batch, Batches
from sigmapca_cli.training.forked_batches import gathering
from sigmapca_cli.training.fused_step import SLOTS, FusedStep
from sigmapca_cli.training.length import stage_of, stages
from sigmapca_cli.training.schedule import rate_factor

# Names among the slots that belong to the loop, not to the optimizer.
EPOCH_START, EPOCH_BEFORE, EPOCH_LOSS, BEST = "epoch.W", "epoch.before", "epoch.loss", "best."

Log = Callable[[np.ndarray, dict[str, np.ndarray]], None]


def stacked(losses: list[Any]) -> np.ndarray:
    """Losses of single steps, tensors or numbers, as one float64 array (m,); numbers stand before tensors."""
    numbers = [loss for loss in losses if not hasattr(loss, "detach")]
    tensors = [loss.reshape(()) for loss in losses if hasattr(loss, "detach")]
    after = as_numpy(stack(tensors)).astype(np.float64) if tensors else np.empty(0)
    return np.concatenate([np.asarray(numbers, np.float64), after])


@dataclass
class Hooks:
    """What hangs on the loop: called between two steps, never inside one."""

    log: Log = lambda steps, values: None
    measure: Callable[[dict[str, Array]], dict[str, float]] = lambda state: {}
    between: Callable[["Trainer"], None] = lambda trainer: None
    finished: Callable[["Trainer"], bool] = lambda trainer: False


@dataclass
class Trainer:
    """One run, or R runs at once where the state has a leading dimension.

    All that changes is `state`, `slots`, `step`, `losses` and the random generator: a checkpoint is these.
    The arrays are NumPy's where the method is `methods.host`'s, which draws nothing at random; else torch's.
    """

    cfg: Any
    method: Any
    batches: Batches
    state: dict[str, Array]
    covariance: Array
    generator: Any = None
    hooks: Hooks = field(default_factory=Hooks)
    step: int = 0
    slots: dict[str, Array] = field(default_factory=dict)
    losses: list[Any] = field(default_factory=list)
    assessed: Any = None  # (step, Convergence) of the last measurement
    unit: float = 1.0  # what the rows were divided by: a loss is told in the units of the data

    def __post_init__(self) -> None:
        cfg = self.cfg
        self.ends = stages(cfg, self.batches.per_epoch)
        if not self.slots:
            self.slots = {
                f"{slot}.{name}": made_like(value, np.zeros_like(as_numpy(value)))
                for name, value in self.parameters.items()
                for slot in SLOTS[cfg.optimizer.name]
            }
        self.fused: FusedStep | None = None
        self.composed: Any = None

    @property
    def parameters(self) -> dict[str, Array]:
        """What the optimizer moves, by name."""
        return {name: self.state[name] for name in self.method.parameters}

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

    def factor(self) -> float:
        """Factor of the learning rate at the next step; it falls anew in every stage."""
        start, end = stage_of(self.ends, self.step)
        return rate_factor(self.cfg.optimizer.schedule, self.step - start, end - start)

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, batch within the epoch) of the next step."""
        return divmod(self.step, self.batches.per_epoch)

    def run(self) -> None:
        """Train until the last step, or until a hook says that it is enough."""
        self.choose_step()
        self.batches.centre = self.fused is not None
        with self.gathering(), np.errstate(all="ignore"):  # what has diverged is said by `check`
            self.all_steps()

    def choose_step(self) -> None:
        """The step by hand where it covers the configuration, else the composed one."""
        if covers(self.cfg):
            self.fused = FusedStep([self.cfg], self.state, self.slots)
            return
        from sigmapca_cli.training.autograd_step import ComposedStep

        self.composed = ComposedStep(self.cfg, self.method, self.generator)

    def gathering(self) -> AbstractContextManager[None]:
        """Batches from a process of their own, where the step is NumPy's: it would wait for a thread's turns."""
        on_host = self.fused is not None and self.fused.host
        return gathering(self.batches, self.ends[-1] - self.step) if on_host else nullcontext()

    def all_steps(self) -> None:
        """Epoch after epoch."""
        while self.step < self.ends[-1]:
            epoch, first = self.position
            if first == 0:
                self.begin_epoch()
            for batch in self.batches.epoch(epoch, first):
                self.advance(batch)
                ended = self.has_ended()
                if ended or self.step % self.cfg.log_every == 0:
                    self.flush(ended)
                    if self.hooks.finished(self):
                        return
                self.hooks.between(self)
                if self.step == self.ends[-1]:
                    return

    def has_ended(self) -> bool:
        """Whether a stage ends here, or an epoch. Thousands of epochs of a few steps are not worth a line each."""
        brief = self.batches.per_epoch < self.cfg.log_every and self.cfg.keep == "last"
        skipped = brief and len(self.ends) > 1 and self.cfg.stop == "never"
        return self.step in self.ends or (not skipped and self.position[1] == 0)

    def begin_epoch(self) -> None:
        """Refresh what is exact over the data, and remember where the filters are."""
        self.method.begin_epoch(self.state, self.covariance)
        if EPOCH_START in self.slots:
            self.slots[EPOCH_BEFORE] = self.slots[EPOCH_START]
        self.slots[EPOCH_START] = copy_of(self.state[self.method.trained])

    def advance(self, batch: Batch) -> None:
        """One step."""
        factor = self.factor()
        self.step += 1
        if self.fused is not None:
            self.losses.append(self.fused.step(*self.fused.taken(batch), self.step, factor))
            return
        rate = float(self.cfg.lr) * factor
        self.losses.append(self.composed.step(batch, self.state, self.slots, self.step, rate))

    def flush(self, ended: bool = False) -> None:
        """Hand the window's mean loss and the measures to the log; stop a run that has diverged."""
        window = stacked(self.losses)
        self.losses.clear()
        self.check(window)
        values = {"loss": window.mean(0) * self.unit**2, **self.hooks.measure(self.state)}
        self.keep(window, ended)
        if ended:
            values["filter_change"] = np.asarray(self.change())
        self.hooks.log(np.array([self.step]), {k: np.asarray(v)[None] for k, v in values.items()})

    def change(self) -> float:
        """Largest 1 − |cos| between a filter now and an epoch ago; NaN before a whole epoch has passed.

        A last epoch that is cut short is counted together with the one before it.
        """
        start = self.slots.get(EPOCH_START if self.position[1] == 0 else EPOCH_BEFORE)
        if start is None:
            return math.nan
        W, start = (as_numpy(v).astype(np.float64) for v in (self.state[self.method.trained], start))
        norms = np.linalg.norm(W, axis=-2) * np.linalg.norm(start, axis=-2)
        return float(1 - np.abs((W * start).sum(-2) / np.maximum(norms, 1e-30)).min())

    def keep(self, window: np.ndarray, ended: bool) -> None:
        """With keep=best_loss: at the end of an epoch, remember the state when its mean loss is the lowest so far.

        The sums stand among the slots, so that a checkpoint carries them.
        """
        if self.cfg.keep != "best_loss":
            return
        if EPOCH_LOSS not in self.slots:
            self.slots[EPOCH_LOSS] = made_like(self.state["W"], np.array([0.0, 0.0, math.inf]))
        sums = self.slots[EPOCH_LOSS]
        sums[0] += float(window.sum())
        sums[1] += len(window)
        if not ended:
            return
        if sums[0] / sums[1] < sums[2]:
            sums[2] = sums[0] / sums[1]
            for name, value in self.state.items():
                self.slots[BEST + name] = copy_of(value)
        sums[:2] = 0

    def kept(self) -> dict[str, Array]:
        """The state whose filters are the result: the last, or that of the epoch with the lowest loss."""
        best = {n.removeprefix(BEST): v for n, v in self.slots.items() if n.startswith(BEST)}
        return best or self.state

    def check(self, window: np.ndarray) -> None:
        """Refuse to train on in silence once a loss is not finite, or a filter neither finite nor zero."""
        # An update without a loss reports NaN throughout, which is no divergence.
        bad = ~np.isfinite(window) if self.method.has_loss else np.zeros(len(window), bool)
        # A filter that overflows under a unit norm ends as zero: x / ∞.
        size = np.square(as_numpy(self.state[self.method.trained])).sum(-2)
        if bad.any() or not ((size > 0) & np.isfinite(size)).all():
            step = self.step - len(window) + (int(bad.argmax()) + 1 if bad.any() else len(window))
            raise RunFailed(
                f"diverged at step {step}: {'the loss' if bad.any() else 'a filter'} became NaN, infinite or zero; "
                f"try a smaller lr (now {float(self.cfg.lr):g}) or another optimizer"
            )
