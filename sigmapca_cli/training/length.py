"""How long a run trains: the steps or epochs that were asked for, or stages until it has converged."""

import math

from sigmapca_cli.settings.schema import Config

PASSES = 3
"""Passes over the data of the first stage, as many as the paper makes."""
FIRST = 1500
"""Fewest steps of the first stage: 2,000 rows of `data=planted` are solved in it."""
MOST = 12_000
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
    most = cfg.max_steps or max(MOST, passes)
    ends = [min(max(passes, FIRST), most)]
    while ends[-1] < most:
        ends.append(min(GROWTH * ends[-1], most))
    return tuple(ends)


def stage_of(ends: tuple[int, ...], step: int) -> tuple[int, int]:
    """(start, end) of the stage that the step numbered `step`, counted from 0, belongs to; beyond the end, the last."""
    starts = (0, *ends[:-1])
    return next(((a, b) for a, b in zip(starts, ends, strict=True) if step < b), (starts[-1], ends[-1]))
