"""Stochastic training from its start to a `Solution` and facts."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.config import Config
from sigmapca_cli.errors import RunFailed, Stopped
from sigmapca_cli.methods.host import HostMethod
from sigmapca_cli.methods.solution import Solution, deviations
from sigmapca_cli.runner import checkpoints
from sigmapca_cli.runner.progress import progress
from sigmapca_cli.runner.start import initial_filters
from sigmapca_cli.runs.find import shortened
from sigmapca_cli.runs.write import RunWriter
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.arrays import Array, as_numpy
from sigmapca_cli.training.batches import Batches
from sigmapca_cli.training.convergence import Convergence, assess
from sigmapca_cli.training.length import announce
from sigmapca_cli.training.loop import Hooks, Trainer, stacked

if TYPE_CHECKING:
    from sigmapca_cli.runner.lifecycle import Work

SNAPSHOT_SECONDS = 10.0
FIRST_LOOK = 100  # with stop=tol: the first step to look at
LOOKS = 1.3  # and the growth of the steps from look to look
LONG_SECONDS = 5.0  # more training than this is not thrown away when the evaluation after it is interrupted
Facts = dict[str, Any]


def solve(begun: "Work", guard: Guard) -> tuple[Solution, Facts]:
    """The solution of a run, and what is to be stored about how it was found."""
    cfg, source = begun.job.cfg, begun.source
    trainer = make_trainer(cfg, begun.method, source, begun.device)
    if begun.saved is not None:
        checkpoints.restore(trainer, begun.saved)
    if begun.saved is None or not begun.saved.trained:
        saver = checkpoints.Saver(cfg, begun.folder, begun.job.hash, source.hash)
        train(trainer, source, begun.writer, saver, guard)
    return conclude(trainer, source)


def make_trainer(cfg: Config, method: Any, source: Source, device: Any) -> Trainer:
    """A trainer at its first step, on `device` where torch is to compute."""
    unit = unit_of(cfg, source)
    source = source.divided(unit)
    C = source.covariance()[1]
    W = initial_filters(cfg, source)
    sigma = deviations(W, C)
    batches = Batches(source, cfg.batch_size, cfg.seed, through=cfg.shuffle_buffer)
    W, sigma, C = (value.astype(cfg.dtype) for value in (W, sigma, C))
    if isinstance(method, HostMethod):
        return Trainer(cfg, method, batches, method.init_state(W, sigma), C, unit=unit)
    import torch

    generator = torch.Generator(device=device).manual_seed(cfg.seed)
    start, deviation, covariance = (
        torch.from_numpy(np.ascontiguousarray(value)).to(device) for value in (W, sigma, C)
    )
    state = method.init_state(start, deviation, generator)
    return Trainer(cfg, method, batches, state, covariance, generator, unit=unit)


def unit_of(cfg: Config, source: Source) -> float:
    """What the rows are divided by while they train: √(mean variance of a feature), or 1 where that is 1 already.

    ε, the learning rate of SGD and the weights of regularisers are numbers without a unit only then.
    """
    if not cfg.rescale or source.has_unit_variance:
        return 1.0
    return float(np.sqrt(np.trace(source.covariance()[1]) / source.p)) or 1.0


def truth_measure(method: Any, source: Source) -> Callable[[dict[str, Array]], dict[str, float]]:
    """MCC of the present filters where the true ones are known: cheap enough for every stored step."""
    if source.truth is None or source.truth.filters is None:
        return lambda state: {}
    truth = source.truth.filters

    def measure(state: dict[str, Array]) -> dict[str, float]:
        from sigmapca_cli.evaluation import metrics

        return {"mcc": metrics.mcc(as_numpy(method.directions(state)).astype(np.float64), truth)}

    return measure


def train(
    trainer: Trainer, source: Source, writer: RunWriter, saver: checkpoints.Saver, guard: Guard
) -> None:
    """Run the loop with everything that hangs on it: log, progress, snapshots, checkpoints, signals."""
    announce(trainer)
    shown = progress(trainer.total, trainer.cfg.log_format)

    def between(trainer: Trainer) -> None:
        if guard.received is not None:
            stop(trainer, writer, saver, guard)
        if saver.due(trainer.step):
            save(trainer, writer, saver)

    trainer.hooks = hooks(trainer, source, writer, shown.update)
    trainer.hooks.between = between
    enough = trainer.hooks.finished

    def finished(trainer: Trainer) -> bool:
        done = enough(trainer)
        shown.extend(trainer.step if done else trainer.total)
        return done

    trainer.hooks.finished = finished
    with guard.noting():
        try:
            trainer.run()
        finally:
            shown.close()
        if guard.received is not None:
            stop(trainer, writer, saver, guard, trained=True)
        if time.monotonic() - saver.last > LONG_SECONDS:
            save(trainer, writer, saver, trained=True)


def hooks(
    trainer: Trainer, source: Source, writer: RunWriter, show: Callable[[int, dict[str, float]], None]
) -> Hooks:
    """What every run hangs on the loop: its log and snapshots, its measures, and when it is enough."""
    cfg: Any = trainer.cfg
    last_snapshot = time.monotonic()

    def log(steps: np.ndarray, values: dict[str, np.ndarray]) -> None:
        nonlocal last_snapshot
        row = {name: float(value[-1]) for name, value in values.items()}
        writer.log(int(steps[-1]), row)
        show(int(steps[-1]), row)
        if time.monotonic() - last_snapshot > SNAPSHOT_SECONDS:
            writer.snapshot(filters=as_numpy(trainer.state["W"]))
            last_snapshot = time.monotonic()

    def finished(trainer: Trainer) -> bool:
        # Rows that leave a pair free are no reason to end a run before its bound, unless that was asked for.
        strict = trainer.between_stages
        return to_be_asked(trainer) and assessed(trainer).converged(cfg.tol, strict=strict)

    return Hooks(log, truth_measure(trainer.method, source), finished=finished)


def save(trainer: Trainer, writer: RunWriter, saver: checkpoints.Saver, *, trained: bool = False) -> None:
    """A checkpoint, after the metrics up to it are on disk; a state that has diverged does not replace a good one."""
    trainer.check(stacked(trainer.losses))
    writer.flush(durable=True)
    saver.save(trainer, trained=trained)


def stop(
    trainer: Trainer, writer: RunWriter, saver: checkpoints.Saver, guard: Guard, *, trained: bool = False
) -> None:
    """A signal came: save what is needed to go on, mark the run interrupted, and leave."""
    save(trainer, writer, saver, trained=trained)
    writer.finish({"filters": as_numpy(trainer.state["W"])}, status="interrupted")
    requeue = guard.pass_on()
    if requeue is not None:
        requeue()
    raise Stopped(
        f"{guard.name} at step {trainer.step} of {trainer.total}: saved; go on with "
        f"sigmapca train --resume {shortened(writer.folder)}",
        exit_status=guard.exit_status,
    )


def to_be_asked(trainer: Trainer) -> bool:
    """Whether this is a step at which the run may end because it has converged."""
    return trainer.between_stages or (trainer.cfg.stop == "tol" and due(trainer))


def due(trainer: Trainer) -> bool:
    """With stop=tol: whether to look at the end of this epoch; the looks grow rare, so that they cost a small share."""
    if trainer.position[1] != 0 or trainer.step < FIRST_LOOK:
        return False
    before = max(trainer.step - trainer.batches.per_epoch, 1)
    return math.floor(math.log(trainer.step, LOOKS)) > math.floor(math.log(before, LOOKS))


def assessed(trainer: Trainer) -> Convergence:
    """The convergence of the trainer's state, measured once a step."""
    if trainer.assessed is None or trainer.assessed[0] != trainer.step:
        found = assess(trainer.method, trainer.kept(), trainer.batches.source, work=trainer.work)
        trainer.assessed = (trainer.step, found)
    return trainer.assessed[1]


def conclude(trainer: Trainer, source: Source) -> tuple[Solution, Facts]:
    """The solution in its final order and signs, with the evidence for its convergence."""
    cfg: Any = trainer.cfg
    state = trainer.kept()
    found = assessed(trainer)
    if not np.isfinite(found.gradient).all():
        raise RunFailed(
            f"ended after {trainer.step} steps without a usable solution (its gradient is not finite): "
            f"try a smaller lr (now {float(cfg.lr):g})"
        )
    solution = trainer.method.result(state, source.covariance()[1])
    if "trained_sigma" in solution.extra:
        solution.extra["trained_sigma"] = solution.extra["trained_sigma"] * trainer.unit
    facts: Facts = {
        **found.facts(solution.order),
        "converged": found.converged(cfg.tol),
        "steps": trainer.step,
        "filter_change": trainer.change(),
        **solution.extra,
    }
    return solution, facts
