"""The training loop, over runs that see the same batches; a run alone is a group of one.

Each run keeps its own log, checkpoint and result; the group shares the batches and the matrix products. A run that
ends, fails or diverges leaves the group, and the others go on: the columns of a product do not touch each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.system.processes import mapped
from sigmapca_cli.training.arrays import as_numpy, stack
from sigmapca_cli.training.batches import StackedBatches
from sigmapca_cli.training.stacked_step import stacked_step
from sigmapca_cli.training.trainer import Trainer

Group = Sequence[Trainer]


@dataclass
class LoopHooks:
    """Callbacks for a whole group, called between steps.

    begun: a group starts to step. logged: a window was logged. asked: the runs were
    asked whether they are done. pauses(step): whether `pause`, which saves or stops the runs, is due after this step.
    """

    begun: Callable[[Group], None] = lambda group: None
    logged: Callable[[Group], None] = lambda group: None
    asked: Callable[[Group], None] = lambda group: None
    pauses: Callable[[int], bool] = lambda step: False
    pause: Callable[[], None] = lambda: None


def train(runs: Group, hooks: LoopHooks | None = None) -> None:
    """Train until every run is done or has failed. Runs at different steps join as soon as they are at the same one."""
    hooks = hooks or LoopHooks()
    with np.errstate(all="ignore"):  # `Trainer.check` reports divergence
        while waiting := [run for run in runs if run.waiting]:
            least = min(run.step for run in waiting)
            until = min((run.step for run in waiting if run.step > least), default=waiting[0].ends[-1])
            alike = [run for run in waiting if run.step == least]
            train_group(alike, until, hooks)


def train_group(group: Group, until: int, hooks: LoopHooks) -> None:
    """Train runs that are at the same step up to step `until`, or until one of them leaves the group."""
    first, window = group[0], []
    hooks.begun(group)
    if first.step >= first.ends[-1]:  # of a checkpoint
        ask(group, hooks)
        return
    with stacked_step(group) as step:
        for run in group:
            run.batches.prepare(step.wants_centred)
        each = [run.batches for run in group]
        batches = each[0] if len({one.seed for one in each}) == 1 else StackedBatches(each)
        while first.step < until:
            epoch, start = first.position
            if start == 0:
                for run in group:
                    run.begin_epoch()
            for batch in batches.epoch(epoch, start):
                window.append(step.advance(batch, first.step + 1, [run.factor for run in group]))
                for run in group:
                    run.step += 1
                if first.step % first.cfg.log_every == 0 or first.epoch_ended:
                    hand_out(window, group)
                    if not log_window(group, hooks):
                        return
                if hooks.pauses(first.step):
                    hand_out(window, group)
                    hooks.pause()
                if first.step == until:
                    hand_out(window, group)
                    return


def hand_out(window: list[Any], group: Group) -> None:
    """Give each run its losses of the steps in the window, and empty the window."""
    if not window:
        return
    losses = as_numpy(stack(window)) if hasattr(window[0], "detach") else np.asarray(window)
    each = losses.astype(np.float64).reshape(len(window), -1)
    for run, column in zip(group, each.T, strict=True):
        run.losses.extend(column)
    window.clear()


def log_window(group: Group, hooks: LoopHooks) -> bool:
    """Let every run log its window and say whether it is done; return whether the group stays as it is."""
    for run in group:
        with run.hooks.contained():
            run.end_window()
    hooks.logged(group)
    ask(group, hooks)
    return all(run.waiting for run in group)


def ask(group: Group, hooks: LoopHooks) -> None:
    """Ask every run of a group whether it is done; at the end of a stage that is a measurement each."""
    asked = [run for run in group if run.waiting]
    if len(asked) > 1 and asked[0].step in asked[0].ends:
        list(mapped(ask_one, asked))
    else:
        for run in asked:
            ask_one(run)
    hooks.asked(group)


def ask_one(run: Trainer) -> None:
    """Ask one run whether it is done: at its last step, or where its hook says so."""
    with run.hooks.contained():
        run.done = run.step >= run.ends[-1] or run.hooks.finished(run)
        if run.step >= run.ends[-1]:
            run.hooks.end(run)
