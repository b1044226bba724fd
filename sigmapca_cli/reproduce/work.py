"""From panels to runs: what is composed once, made once, and trained side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sigmapca_cli.reproduce.experiment import Experiment
from sigmapca_cli.reproduce.plan import Setting, name_of
from sigmapca_cli.system.errors import SigmapcaError

if TYPE_CHECKING:
    from sigmapca_cli.composition.job import Job


@dataclass(frozen=True)
class Task:
    """One run of one experiment; with another solver it is solved so where that solver knows its model."""

    experiment: str
    key: str
    overrides: tuple[str, ...]
    solver: str = "stochastic"


@dataclass(frozen=True)
class Planned:
    """The run that one or more panels show: its job, or why there is none; equal groups can be trained side by side."""

    tasks: tuple[Task, ...]
    job: Job | None = None
    group: str | None = None
    problem: str = ""


def tasks(experiment: Experiment, setting: Setting) -> list[Task]:
    """All runs of an experiment that a setting asks for."""
    return [
        Task(
            experiment.name,
            name_of(panel.key, repetition),
            tuple(experiment.overrides(panel, setting, repetition)),
            "stochastic" if panel.solved else setting.solver,
        )
        for panel, repetition in experiment.runs(setting)
    ]


def plan(task: Task) -> Planned:
    """Compose a task; a mistake in one is a fact to report, not the end of the others."""
    from sigmapca_cli.runner.grouped import group_key
    from sigmapca_cli.runner.plan import method_of

    try:
        made = job(task)
        return Planned((task,), made, group_key(made, method_of(made.cfg), across_seeds=True))
    except SigmapcaError as problem:
        return Planned((task,), problem=str(problem))


def job(task: Task) -> Job:
    """The typed job that the command line would compose."""
    found = composed(task.overrides)
    if task.solver != "stochastic":
        from sigmapca_cli.runner.plan import SOLVERS
        from sigmapca_cli.settings.ways import Way

        if SOLVERS[Way(task.solver)].refusal(found.cfg) is None:
            return composed((*task.overrides, f"solver={task.solver}"))
    return found


def composed(overrides: tuple[str, ...]) -> Job:
    """The job of these overrides; a run that is finished already is not made again."""
    from sigmapca_cli.composition.compose import compose_job

    return compose_job([*overrides, "if_exists=skip"])


def merged(planned: Iterable[Planned]) -> list[Planned]:
    """Panels of one configuration, of whatever experiment, share one run."""
    found: dict[str, Planned] = {}
    for number, one in enumerate(planned):
        name = one.job.hash if one.job is not None else f"problem {number}"
        found[name] = replace(one, tasks=found[name].tasks + one.tasks) if name in found else one
    return list(found.values())


def units(planned: Iterable[Planned]) -> list[list[Planned]]:
    """What one process makes in one go: runs of one group, as many as are worth it, or a single run."""
    from sigmapca_cli.runner.grouped import chunks_of

    groups: dict[str, list[Planned]] = {}
    for number, one in enumerate(merged(planned)):
        groups.setdefault(one.group or f"alone {number}", []).append(one)
    found: list[list[Planned]] = []
    for members in groups.values():
        job = members[0].job
        found += [list(part) for part in chunks_of(members, job.cfg.k)] if job is not None else [members]
    return found
