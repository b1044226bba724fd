"""One step for several runs: as one program, or in parts on several cores."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sigmapca_cli.methods.host import covers
from sigmapca_cli.processes import available_threads
from sigmapca_cli.training.arrays import on_host, stack
from sigmapca_cli.training.fused_step import MOMENTS, FusedStep
from sigmapca_cli.training.loop import Trainer

LEAST = 3  # runs that are worth a thread


@contextmanager
def side_by_side(trainers: list[Trainer]) -> Iterator[Any]:
    """One step for all, `losses`; inside, each trainer's arrays are views of the common ones."""
    first = trainers[0]
    parts = 1
    if covers(first.cfg) and on_host(first.state["W"]):
        parts = min(available_threads(), len(trainers) // LEAST)
    if parts <= 1:
        yield joined(trainers)
        return
    steps = [
        joined(trainers[part[0] : part[-1] + 1]) for part in np.array_split(np.arange(len(trainers)), parts)
    ]
    with ThreadPoolExecutor(parts - 1, thread_name_prefix="together") as pool:
        yield Threads(steps, pool)


def joined(trainers: list[Trainer]) -> Any:
    """One step of these runs, by hand or composed, on their arrays stacked; a run alone keeps its own."""
    first, cfgs = trainers[0], [t.cfg for t in trainers]
    state, slots = first.state, first.slots
    if len(trainers) > 1:
        state = {n: stack([t.state[n] for t in trainers]) for n in state}
        slots = {n: stack([t.slots[n] for t in trainers]) for n in slots if n.partition(".")[0] in MOMENTS}
    step: Any
    if covers(first.cfg):
        step = FusedStep(cfgs, state, slots)
    else:
        from sigmapca_cli.training.autograd_step import ComposedSteps

        step = ComposedSteps(cfgs, [t.method for t in trainers], state, slots, first.generator)
    if len(trainers) > 1:
        for r, trainer in enumerate(trainers):
            trainer.state = {n: state[n][r] for n in trainer.state}
            trainer.slots |= {n: value[r] for n, value in slots.items()}
            trainer.generator = first.generator
    return step


class Threads:
    """The runs of a group in parts, one on each core: they share the batch and nothing else."""

    def __init__(self, parts: list[FusedStep], pool: ThreadPoolExecutor) -> None:
        self.parts, self.pool = parts, pool

    def losses(self, batch: Any, count: int, factors: Sequence[float]) -> Any:
        """One step of every run, (R,)."""
        shares = list(self.shares(factors))
        others = [
            self.pool.submit(quietly, part.losses, batch, count, share)
            for part, share in zip(self.parts[1:], shares[1:], strict=True)
        ]
        found = [self.parts[0].losses(batch, count, shares[0]), *(other.result() for other in others)]
        return np.concatenate([np.atleast_1d(loss) for loss in found])

    def shares(self, factors: Sequence[float]) -> Iterator[Sequence[float]]:
        """The factors of each part."""
        start = 0
        for part in self.parts:
            yield factors[start : start + part.runs]
            start += part.runs


def quietly(function: Any, *arguments: Any) -> Any:
    """NumPy's warnings are a thread's own matter; what has diverged is said by `check`."""
    with np.errstate(all="ignore"):
        return function(*arguments)
