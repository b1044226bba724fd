"""One step for several runs: as one program, or in parts on several cores."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sigmapca_cli.methods.host import covers
from sigmapca_cli.processes import available_threads
from sigmapca_cli.training.arrays import on_host, stack
from sigmapca_cli.training.fused import FusedStep
from sigmapca_cli.training.loop import Trainer

LEAST = 3  # runs that are worth a thread


@contextmanager
def side_by_side(trainers: list[Trainer]) -> Iterator[Any]:
    """One step for all, `losses`; inside, each trainer's arrays are views of the common ones."""
    first = trainers[0]
    if not covers(first.cfg):
        from sigmapca_cli.training.composed import ComposedSteps

        yield ComposedSteps(trainers)
        return
    parts = min(available_threads(), len(trainers) // LEAST) if on_host(first.state["W"]) else 1
    if parts <= 1:
        yield fused(trainers)
        return
    steps = [
        fused(trainers[part[0] : part[-1] + 1]) for part in np.array_split(np.arange(len(trainers)), parts)
    ]
    with ThreadPoolExecutor(parts - 1, thread_name_prefix="together") as pool:
        yield Threads(steps, pool)


def fused(trainers: list[Trainer]) -> FusedStep:
    """The step by hand of these runs."""
    first = trainers[0]
    if len(trainers) == 1:
        return FusedStep([first.cfg], first.state, first.slots)
    state = {n: stack([t.state[n] for t in trainers]) for n in first.state}
    moments = [n for n in first.slots if n.partition(".")[0] in ("m", "v", "b") and n.endswith(".W")]
    slots = {n: stack([t.slots[n] for t in trainers]) for n in moments}
    step = FusedStep([t.cfg for t in trainers], state, slots)
    for r, trainer in enumerate(trainers):
        trainer.state = {n: value[r] for n, value in state.items()}
        trainer.slots |= {n: value[r] for n, value in slots.items()}
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
