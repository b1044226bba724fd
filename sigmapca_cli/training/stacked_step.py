"""The step of a group of runs on their arrays stacked: by hand or by autograd, as one program or on several cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.system.processes import available_threads
from sigmapca_cli.training.arrays import Array, as_rows, detached, is_numpy, stack
from sigmapca_cli.training.fused_step import FusedStep
from sigmapca_cli.training.protocols import Step

if TYPE_CHECKING:
    from sigmapca_cli.training.batches import Batch
    from sigmapca_cli.training.trainer import Trainer

RUNS_PER_THREAD = 3  # fewest runs that are worth a thread


@contextmanager
def stacked_step(
    runs: Sequence[Trainer],
) -> Iterator[Step]:
    """Make one step for all runs. While the context is open, each run's arrays are views of the common ones."""
    parts = 1
    if is_numpy(runs[0].state["W"]):
        parts = max(1, min(available_threads(), len(runs) // RUNS_PER_THREAD))
    chunks = [runs[part[0] : part[-1] + 1] for part in np.array_split(np.arange(len(runs)), parts)]
    steps = [step_on_stack(chunk) for chunk in chunks]
    try:
        if parts == 1:
            yield steps[0]
            return
        with ThreadPoolExecutor(parts - 1, thread_name_prefix="runs") as pool:
            yield ThreadedStep(steps, pool)
    finally:
        for run in runs if len(runs) > 1 else ():
            run.state = {name: detached(value) for name, value in run.state.items()}
            run.opt_state = {name: detached(value) for name, value in run.opt_state.items()}


def step_on_stack(runs: Sequence[Trainer]) -> Step:
    """Make the step of these runs on their arrays stacked; a run alone keeps its own arrays."""
    first, cfgs = runs[0], [run.cfg for run in runs]
    state, opt_state = first.state, first.opt_state
    if len(runs) > 1:
        state = {name: stack([run.state[name] for run in runs]) for name in state}
        opt_state = {name: stack([run.opt_state[name] for run in runs]) for name in opt_state}
    step: Step
    if is_numpy(state["W"]):
        step = FusedStep(cfgs, state, opt_state)
    else:
        from sigmapca_cli.training.autograd_step import AutogradStep

        methods: list[Any] = [run.method for run in runs]
        step = AutogradStep(cfgs, methods, state, opt_state, first.generator)
    if len(runs) > 1:
        for r, run in enumerate(runs):
            run.state = {name: state[name][r] for name in run.state}
            run.opt_state = {name: value[r] for name, value in opt_state.items()}
            if run.cfg.seed == first.cfg.seed:
                run.generator = first.generator
    return step


def lay_out(run: Trainer) -> None:
    """Lay the arrays of a run out as its steps leave them: the last bits of later sums depend on that."""
    if is_numpy(run.state["W"]):
        for store, name in ((run.state, "W"), *((run.opt_state, name) for name in run.opt_state)):
            as_rows(store, name)


class ThreadedStep:
    """The runs of a group in parts, one on each core: they share the batch and nothing else."""

    wants_centred = True

    def __init__(self, parts: list[Step], pool: ThreadPoolExecutor) -> None:
        self.parts, self.pool, self.runs = parts, pool, sum(part.runs for part in parts)

    def advance(self, batch: Batch, count: int, factors: Sequence[float]) -> Array:
        """Make one step of every run; see `protocols.Step`."""
        ends = np.cumsum([part.runs for part in self.parts])
        split = [factors[end - part.runs : end] for part, end in zip(self.parts, ends, strict=True)]
        others = [
            self.pool.submit(suppress_numpy_warnings, part.advance, batch, count, own)
            for part, own in zip(self.parts[1:], split[1:], strict=True)
        ]
        losses = [self.parts[0].advance(batch, count, split[0]), *(other.result() for other in others)]
        return np.concatenate([np.atleast_1d(loss) for loss in losses])


def suppress_numpy_warnings(function: Any, *arguments: Any) -> Any:
    """Call the function without NumPy's warnings, which are switched off for each thread by itself."""
    with np.errstate(all="ignore"):
        return function(*arguments)
