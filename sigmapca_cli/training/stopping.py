"""When a run may end: where it is asked, what its convergence is, and the full-batch steps that end it."""

from __future__ import annotations

import math

import numpy as np

from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.training.arrays import made_like
from sigmapca_cli.training.assess import assess
from sigmapca_cli.training.convergence import Convergence
from sigmapca_cli.training.ending import SURE, ended
from sigmapca_cli.training.trainer import Trainer

FIRST_LOOK = 100
"""With stop=tol: the first step at which convergence is measured."""
LOOKS = 1.3
"""Growth of the steps from one measurement to the next."""


def finished(trainer: Trainer) -> bool:
    """Return whether a run may end here: it is asked at this step, and it has converged.

    Between two stages, pairs that the rows leave free are no reason to end before the bound; with stop=tol they are.
    """
    if not is_asked(trainer):
        return False
    found = convergence_of(trainer)
    return found.singly(trainer.cfg.tol) if trainer.between_stages else found.converged(trainer.cfg.tol)


def end(trainer: Trainer) -> None:
    """Let a run that has not surely converged end with full-batch steps, where these apply; keep the nearer state.

    What they lead to depends on the state and the data alone: a run that is resumed before its end makes them again.
    """
    sure = SURE * trainer.cfg.tol
    if not trainer.full_batch_ending or convergence_of(trainer, sure).converged(sure):
        return
    before, there = trainer.state, convergence_of(trainer)
    with on_threads(trainer.cfg.threads):
        trainer.state, steps = ended(trainer.method, before, trainer.batches.source, trainer.cfg.tol)
    trainer.memory.ending, trainer.assessed = made_like(before["W"], np.array([steps])), None
    here = convergence_of(trainer)
    if here.distance <= there.distance:
        return
    after = trainer.state, trainer.memory.ending, trainer.assessed
    trainer.state, trainer.memory.ending, trainer.assessed = before, None, None
    if convergence_of(trainer).distance >= here.distance:  # all ways together, which nobody had asked yet
        trainer.state, trainer.memory.ending, trainer.assessed = after


def is_asked(trainer: Trainer) -> bool:
    """Return whether this is a step at which the run may end because it has converged."""
    return trainer.between_stages or (trainer.cfg.stop == "tol" and is_due(trainer))


def is_due(trainer: Trainer) -> bool:
    """Return whether stop=tol measures at the end of this epoch. The intervals grow, so that it costs a small share."""
    if trainer.position[1] != 0 or trainer.step < FIRST_LOOK:
        return False
    before = max(trainer.step - trainer.batches.per_epoch, 1)
    return math.floor(math.log(trainer.step, LOOKS)) > math.floor(math.log(before, LOOKS))


def convergence_of(trainer: Trainer, enough: float = math.inf) -> Convergence:
    """Measure the convergence of the trainer's state, once a step; `enough` as `assess` takes it."""
    if trainer.assessed is None or trainer.assessed[0] != trainer.step:
        with on_threads(trainer.cfg.threads):
            found = assess(
                trainer.method,
                trainer.kept(),
                trainer.batches.source,
                work=trainer.work,
                every_row=trainer.full_batch_steps > 0,
                enough=enough,
            )
        trainer.assessed = (trainer.step, found)
    return trainer.assessed[1]
