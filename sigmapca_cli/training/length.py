"""How long a run trains: steps or epochs, or stages until it has converged; how its learning rate falls."""

import math

from sigmapca_cli.settings.schema import Config

PASSES = 3
"""Passes over the data of the first stage, as many as the paper makes."""
FEWEST_STEPS = 1500
"""Fewest steps of the first stage: 2,000 rows of `data=planted` are solved in it."""
MOST_STEPS = 12_000
"""Most steps in all, where fewer are no whole passes and `max_steps` says nothing else."""
GROWTH = 3
"""Each stage ends at so many times the steps of the one before: it anneals for longer than all before it."""


def stages(cfg: Config, per_epoch: int) -> tuple[int, ...]:
    """The step at which each stage ends; the last is the most that the run may take.

    One stage where `steps` or `epochs` is given. Else the run goes on to the next stage, with a learning rate that
    falls anew, until it has converged. The bounds depend on the configuration and the number of rows alone, so that
    a run that was interrupted makes the steps it would have made.
    """
    if cfg.steps:
        return (cfg.steps,)
    if cfg.epochs is not None:
        return (max(1, math.ceil(cfg.epochs * per_epoch)),)
    passes = PASSES * per_epoch
    most = cfg.max_steps or max(MOST_STEPS, passes)
    ends = [min(max(passes, FEWEST_STEPS), most)]
    while ends[-1] < most:
        ends.append(min(GROWTH * ends[-1], most))
    return tuple(ends)


def stage_of(ends: tuple[int, ...], step: int) -> tuple[int, int]:
    """(start, end) of the stage that the step numbered `step`, counted from 0, belongs to; beyond the end, the last."""
    starts = (0, *ends[:-1])
    return next(((a, b) for a, b in zip(starts, ends, strict=True) if step < b), (starts[-1], ends[-1]))


def rate_factor(schedule: str, step: int, total: int) -> float:
    """Factor of the learning rate: 1, or with schedule "cosine" ½(1 + cos(π·step/total)), from 1 to 0 over a run."""
    if schedule != "cosine":
        return 1.0
    return 0.5 * (1.0 + math.cos(math.pi * min(step / max(total, 1), 1.0)))
