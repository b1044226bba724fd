"""Stochastic training of open runs: from their start, or their checkpoint, to a `Solution` and facts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sigmapca_cli.data.moments.implicit import in_type
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.numpy_main import NumpyMain
from sigmapca_cli.methods.solution import Solution, deviations
from sigmapca_cli.runner import checkpoints
from sigmapca_cli.runner.open_run import OpenRun
from sigmapca_cli.runner.progress import progress, say
from sigmapca_cli.runner.solved import Facts
from sigmapca_cli.runner.start import answer_and_a, initial_filters
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.storage.find import shortened
from sigmapca_cli.system.errors import RunFailed, Stopped
from sigmapca_cli.system.signals import Guard
from sigmapca_cli.training import loop
from sigmapca_cli.training.arrays import as_numpy, contiguous
from sigmapca_cli.training.batches import Batches
from sigmapca_cli.training.protocols import State, TrainedMethod
from sigmapca_cli.training.stacked_step import lay_out
from sigmapca_cli.training.stopping import convergence_of, end, finished
from sigmapca_cli.training.trainer import Hooks, Trainer

log = logging.getLogger("sigmapca")

SNAPSHOT_SECONDS = 10.0
LONG_SECONDS = 5.0  # more training than this is saved before the evaluation, which a signal may interrupt


def solve(opened: OpenRun, guard: Guard) -> tuple[Solution, Facts]:
    """Train one open run; return its solution, and what is to be stored about how it was found."""
    run = TrainedRun.begin(opened)
    Training([run], guard).train()
    return build_solution(run.trainer, opened.source)


def make_trainer(cfg: Config, method: TrainedMethod | None, source: Source, device: Any) -> Trainer:
    """Return a trainer at its first step, on `device` where torch computes. Only a method that takes steps has one."""
    assert method is not None
    unit = unit_of(cfg, source)
    divided = source.divided(unit)
    C = divided.covariance()[1]
    chosen = None if cfg.solver.a_from == "sign" else answer_and_a(cfg, divided)
    W = initial_filters(cfg, divided) if chosen is None or cfg.init != "pca" else chosen.R
    sigma = deviations(W, C)
    batches = Batches(divided, cfg.batch_size, cfg.seed, through=cfg.shuffle_buffer)
    C = in_type(C, cfg.dtype)
    W, sigma = (value.astype(cfg.dtype) for value in (W, sigma))
    a = None if chosen is None else chosen.a.astype(cfg.dtype)
    if isinstance(method, NumpyMain):
        return Trainer(cfg, method, batches, method.init_state(W, sigma, a), C, unit=unit, chosen=chosen)
    import torch

    from sigmapca_cli.methods.implicit_tensor import tensor_of

    generator = torch.Generator(device=device).manual_seed(cfg.seed)
    start, deviation, scales = (
        None if value is None else torch.from_numpy(np.ascontiguousarray(value)).to(device)
        for value in (W, sigma, a)
    )
    covariance = tensor_of(C).to(device)
    made: Any = method
    # LAPACK leaves columns contiguous, a checkpoint rows: sums in another order end in other last bits.
    state = {n: contiguous(v) for n, v in made.init_state(start, deviation, generator, scales).items()}
    return Trainer(cfg, method, batches, state, covariance, generator, unit=unit, chosen=chosen)


def unit_of(cfg: Config, source: Source) -> float:
    """Return what the rows are divided by while they train: √(mean variance of a feature), or 1 if that is 1 already.

    Only then ε, the learning rate of SGD and the weights of regularisers are numbers without a unit.
    """
    if not cfg.rescale or source.has_unit_variance:
        return 1.0
    return float(np.sqrt(source.covariance()[1].trace() / source.p)) or 1.0


@dataclass
class TrainedRun:
    """An open run with its trainer and its checkpoints."""

    opened: OpenRun
    trainer: Trainer
    saver: checkpoints.Saver
    last_snapshot: float

    @classmethod
    def begin(cls, opened: OpenRun) -> TrainedRun:
        """Make the trainer of an open run, and put it where its checkpoint left off."""
        plan, source = opened.plan, opened.source
        trainer = make_trainer(plan.cfg, plan.method, source, plan.device)
        if plan.saved is not None:
            checkpoints.restore(trainer, plan.saved)
            trainer.done = plan.saved.trained
            lay_out(trainer)
        saver = checkpoints.Saver(plan.cfg, opened.folder, plan.job.hash, source.hash)
        run = cls(opened, trainer, saver, time.monotonic())
        trainer.hooks = Hooks(run.log, truth_measure(trainer.method, source), finished, end)
        return run

    def log(self, step: int, figures: dict[str, float]) -> None:
        """Store the figures of a window, and now and then the filters."""
        self.opened.writer.log(step, figures)
        if time.monotonic() - self.last_snapshot > SNAPSHOT_SECONDS:
            self.opened.writer.snapshot(filters=as_numpy(self.trainer.state["W"]))
            self.last_snapshot = time.monotonic()

    def save(self, *, trained: bool = False) -> None:
        """Write a checkpoint, after the metrics up to it. Raise RunFailed rather than save a state that has diverged.

        `trained`: no step is to follow.
        """
        self.trainer.check(np.asarray(self.trainer.losses, np.float64))
        self.opened.writer.flush(durable=True)
        self.saver.save(self.trainer, trained=trained)

    def interrupt(self) -> None:
        """Save what is needed to go on, and mark the run interrupted."""
        self.save(trained=self.trainer.done)
        self.opened.writer.finish({"filters": as_numpy(self.trainer.state["W"])}, status="interrupted")

    def stopped_by(self, guard: Guard) -> Stopped:
        """Return the error that says which signal stopped the run, and how to go on."""
        trainer = self.trainer
        return Stopped(
            f"{guard.name} at step {trainer.step} of {trainer.total}: saved; go on with "
            f"sigmapca train --resume {shortened(self.opened.folder)}",
            exit_status=guard.exit_status,
        )


class Training:
    """The loop over open runs on common data, with their progress, their checkpoints and the signals."""

    def __init__(self, runs: Sequence[TrainedRun], guard: Guard) -> None:
        self.runs, self.guard, self.size = runs, guard, 1
        self.clock = runs[0].saver  # whose checkpoint is due: that of a run that still trains
        self.hooks = loop.LoopHooks(self.begun, self.logged, self.asked, self.pauses, self.pause)

    @property
    def alive(self) -> list[TrainedRun]:
        """The runs that have not failed."""
        return [run for run in self.runs if not run.trainer.failed]

    def train(self) -> None:
        """Train all runs to their end. Raise Stopped after a signal; every run is then saved and marked interrupted."""
        waiting = [run.trainer for run in self.runs if run.trainer.waiting]
        if not waiting:
            return
        announce(waiting[0])
        self.bar = progress(waiting[0].total, waiting[0].cfg.log_format)
        with self.guard.deferring():
            try:
                loop.train(waiting, self.hooks)
            finally:
                self.bar.close()
            if self.guard.poll() is not None:
                self.stop()
            for run in self.alive:
                if run.saver.due(run.trainer.step) or time.monotonic() - run.saver.last > LONG_SECONDS:
                    with run.trainer.hooks.contained():
                        run.save(trained=True)

    def begun(self, group: Sequence[Trainer]) -> None:
        """Print how many runs train together, when that changes; take the checkpoints' time from one of them."""
        self.clock = next(run.saver for run in self.runs if run.trainer is group[0])
        if len(group) > 1 and len(group) != self.size:
            say(f"{len(group)} runs side by side")
        self.size = len(group)

    def logged(self, group: Sequence[Trainer]) -> None:
        """Show the figures of the last window: of several runs their mean loss."""
        figures = group[0].figures
        if len(group) > 1:
            losses = [run.figures["loss"] for run in group if not run.failed]
            figures = {"loss": float(np.mean(losses))} if losses else {}
        self.bar.update(group[0].step, figures)

    def asked(self, group: Sequence[Trainer]) -> None:
        """Show the step at which the present stage ends."""
        self.bar.extend(max((run.total for run in group if run.waiting), default=group[0].step))

    def pauses(self, step: int) -> bool:
        """Return whether a signal has come, or a checkpoint is due."""
        return self.guard.poll() is not None or self.clock.due(step)

    def pause(self) -> None:
        """Stop all runs after a signal, else save those that still train."""
        if self.guard.received is not None:
            self.stop()
        for run in self.alive:
            if not run.trainer.done:
                with run.trainer.hooks.contained():
                    run.save()

    def stop(self) -> None:
        """Save every run and mark it interrupted, then obey the signal. Raise Stopped."""
        alive = self.alive
        for run in alive:
            with run.trainer.hooks.contained():
                run.interrupt()
        handler = self.guard.previous_handler()
        if handler is not None:
            handler()
        for run in alive:
            with run.trainer.hooks.contained():
                raise run.stopped_by(self.guard)
        raise (alive or list(self.runs))[0].stopped_by(self.guard)


def announce(trainer: Trainer) -> None:
    """Print how long a run may take that decides by itself when it is done."""
    if trainer.full_batch_ending and trainer.step == 0:
        say(f"trains until it has converged: {trainer.ends[0]:,} steps, then full-batch steps")
    if len(trainer.ends) > 1 and trainer.step == 0:
        say(
            f"trains until it has converged: {trainer.ends[0]:,} steps, then at most {trainer.ends[-1]:,} in all"
        )


def truth_measure(method: TrainedMethod, source: Source) -> Callable[[State], dict[str, float]]:
    """Return a function that gives the MCC of a state's filters, or nothing where the true ones are not known."""
    if source.truth is None or source.truth.filters is None:
        return lambda state: {}
    truth = source.truth.filters

    def measure(state: State) -> dict[str, float]:
        from sigmapca_cli.evaluation import metrics

        return {"mcc": metrics.mcc(as_numpy(method.directions(state)).astype(np.float64), truth)}

    return measure


def build_solution(trainer: Trainer, source: Source) -> tuple[Solution, Facts]:
    """Return the solution in its final order and signs, with the evidence for its convergence."""
    cfg = trainer.cfg
    convergence = convergence_of(trainer)
    if not np.isfinite(convergence.gradient).all():
        raise RunFailed(
            f"ended after {trainer.step} steps without a usable solution (its gradient is not finite): "
            f"try a smaller lr (now {float(cfg.lr):g})"
        )
    solution, converged = (
        trainer.method.result(trainer.kept(), source.covariance()[1]),
        convergence.converged(cfg.tol),
    )
    if converged and trainer.chosen is not None and (words := trainer.chosen.words(solution.W)):
        log.warning(words)
    extra = dict(solution.extra)
    if "trained_sigma" in extra:
        extra["trained_sigma"] = extra["trained_sigma"] * trainer.unit
    facts: Facts = {
        **convergence.facts(solution.order),
        "converged": converged,
        "steps": trainer.step,
        **({"full_batch_steps": trainer.full_batch_steps} if trainer.full_batch_ending else {}),
        "filter_change": trainer.change(),
        **extra,
    }
    return replace(solution, extra=extra), facts
