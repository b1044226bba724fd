"""The training loop: batch, gradient or update, step, constrain, log. Everything else hangs on it from outside."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.errors import RunFailed
from sigmapca_cli.methods.method import Method
from sigmapca_cli.training import optimizers
from sigmapca_cli.training.batches import Batch, Batches
from sigmapca_cli.training.fused import FusedStep, covers
from sigmapca_cli.training.gatherer import gathering
from sigmapca_cli.training.machine import blas_threads

# Names among the slots that belong to the loop, not to the optimizer.
EPOCH_START, EPOCH_BEFORE, EPOCH_LOSS, BEST = "epoch.W", "epoch.before", "epoch.loss", "best."

Log = Callable[[np.ndarray, dict[str, np.ndarray]], None]


def stacked(losses: list[Any]) -> np.ndarray:
    """Losses of single steps, tensors or numbers, as one float64 array (m,); numbers stand before tensors."""
    numbers = [loss for loss in losses if not isinstance(loss, Tensor)]
    tensors = [loss.reshape(()) for loss in losses if isinstance(loss, Tensor)]
    after = torch.stack(tensors).double().cpu().numpy() if tensors else np.empty(0)
    return np.concatenate([np.asarray(numbers, np.float64), after])


@dataclass
class Hooks:
    """What hangs on the loop: called between two steps, never inside one."""

    log: Log = lambda steps, values: None
    measure: Callable[[dict[str, Tensor]], dict[str, float]] = lambda state: {}
    between: Callable[["Trainer"], None] = lambda trainer: None
    finished: Callable[["Trainer"], bool] = lambda trainer: False


@dataclass
class Trainer:
    """One run, or R runs at once where the state has a leading dimension.

    All that changes is `state`, `slots`, `step`, `losses` and the random generator: a checkpoint is these.
    """

    cfg: Any
    method: Method
    batches: Batches
    state: dict[str, Tensor]
    covariance: Tensor
    generator: torch.Generator
    lr: float | Tensor
    hooks: Hooks = field(default_factory=Hooks)
    step: int = 0
    slots: dict[str, Tensor] = field(default_factory=dict)
    losses: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        cfg = self.cfg
        self.optimizer = optimizers.build(cfg.optimizer)
        self.tangent = self.method.tangent_parameters if cfg.optimizer.tangent else ()
        self.buffers: dict[str, Tensor] = {}
        self.total = cfg.steps or max(1, math.ceil(cfg.epochs * self.batches.per_epoch))
        if not self.slots:
            self.slots = self.optimizer.start(self.parameters)
        self.fused: FusedStep | None = None

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The tensors that the optimizer moves, by name."""
        return {name: self.state[name] for name in self.method.parameters}

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, batch within the epoch) of the next step."""
        return divmod(self.step, self.batches.per_epoch)

    def run(self) -> None:
        """Train until the last step, or until a hook says that it is enough."""
        if covers(self.cfg, self.method):
            self.fused = FusedStep([self.cfg], self.state, self.slots)
        self.batches.centre = self.fused is not None
        with blas_threads(), self.gathering():
            self.all_steps()

    def gathering(self) -> AbstractContextManager[None]:
        """Batches from a process of their own, where the step is NumPy's: it would wait for a thread's turns."""
        on_host = self.fused is not None and self.fused.host
        return gathering(self.batches, self.total - self.step) if on_host else nullcontext()

    def all_steps(self) -> None:
        """Epoch after epoch."""
        while self.step < self.total:
            epoch, first = self.position
            if first == 0:
                self.begin_epoch()
            for batch in self.batches.epoch(epoch, first):
                self.advance(batch)
                ended = self.position[1] == 0 or self.step == self.total
                if ended or self.step % self.cfg.log_every == 0:
                    self.flush(ended)
                    if self.hooks.finished(self):
                        return
                self.hooks.between(self)
                if self.step == self.total:
                    return

    def begin_epoch(self) -> None:
        """Refresh what is exact over the data, and remember where the filters are."""
        self.method.begin_epoch(self.state, self.covariance)
        if EPOCH_START in self.slots:
            self.slots[EPOCH_BEFORE] = self.slots[EPOCH_START]
        self.slots[EPOCH_START] = self.state[self.method.trained].detach().clone()

    def advance(self, batch: Batch) -> None:
        """One step."""
        factor = optimizers.rate_factor(self.cfg.optimizer.schedule, self.step, self.total)
        self.step += 1
        if self.fused is not None:
            self.losses.append(self.fused.step(*self.fused.taken(batch), self.step, factor))
            return
        W = self.state[self.method.trained]
        x = torch.from_numpy(batch.x).to(device=W.device, dtype=W.dtype)
        loss, gradients = self.method.gradient(self.state, x, self.generator, self.buffers)
        for name in self.tangent:
            gradients[name] = optimizers.tangent(gradients[name], self.state[name])
        self.optimizer.step(self.parameters, gradients, self.slots, self.step, self.lr * factor)
        self.method.constrain(self.state)
        self.losses.append(loss.detach())

    def flush(self, ended: bool = False) -> None:
        """Hand the window's mean loss and the measures to the log; stop a run that has diverged."""
        window = stacked(self.losses)
        self.losses.clear()
        self.check(window)
        values = {"loss": window.mean(0), **self.hooks.measure(self.state)}
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
        W = self.state[self.method.trained]
        cosine = torch.nn.functional.cosine_similarity(W, start.to(W), dim=-2)
        return float(1 - cosine.abs().min())

    def keep(self, window: np.ndarray, ended: bool) -> None:
        """With keep=best_loss: at the end of an epoch, remember the state when its mean loss is the lowest so far.

        The sums stand among the slots, so that a checkpoint carries them.
        """
        if self.cfg.keep != "best_loss":
            return
        sums = self.slots.setdefault(EPOCH_LOSS, torch.tensor([0.0, 0.0, math.inf], dtype=torch.float64))
        sums[0] += float(window.sum())
        sums[1] += len(window)
        if not ended:
            return
        if sums[0] / sums[1] < sums[2]:
            sums[2] = sums[0] / sums[1]
            for name, value in self.state.items():
                self.slots[BEST + name] = value.detach().clone()
        sums[:2] = 0

    def kept(self) -> dict[str, Tensor]:
        """The state whose filters are the result: the last, or that of the epoch with the lowest loss."""
        best = {n.removeprefix(BEST): v for n, v in self.slots.items() if n.startswith(BEST)}
        return best or self.state

    def check(self, window: np.ndarray) -> None:
        """Refuse to train on in silence once a loss is not finite, or a filter neither finite nor zero."""
        # An update without a loss reports NaN throughout, which is no divergence.
        has_loss = self.method.objective.kind == "loss"
        bad = ~np.isfinite(window) if has_loss else np.zeros(len(window), bool)
        # A filter that overflows under a unit norm ends as zero: x / ∞.
        size = self.state[self.method.trained].square().sum(-2)
        if bad.any() or not bool(((size > 0) & torch.isfinite(size)).all()):
            step = self.step - len(window) + (int(bad.argmax()) + 1 if bad.any() else len(window))
            raise RunFailed(
                f"diverged at step {step}: {'the loss' if bad.any() else 'a filter'} became NaN, infinite or zero; "
                f"try a smaller lr (now {float(self.cfg.lr):g}) or another optimizer"
            )
