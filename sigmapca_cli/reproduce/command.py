"""`sigmapca reproduce`: run what is missing, judge, draw, and write the summary."""

from __future__ import annotations

import time
from pathlib import Path

from sigmapca_cli.config import choice
from sigmapca_cli.errors import InputError
from sigmapca_cli.processes import refuse_several
from sigmapca_cli.reproduce import page
from sigmapca_cli.reproduce.engine import (
    Outcome,
    Task,
    available_cores,
    job,
    perform_all,
    pool,
    quiet,
    short,
    tasks,
)
from sigmapca_cli.reproduce.plan import Experiment, Setting
from sigmapca_cli.reproduce.registry import EXPERIMENTS, pick
from sigmapca_cli.reproduce.verdicts import Verdict, conclude, folder_of, held
from sigmapca_cli.runs.folders import outputs_root

RECIPES = ("default", "paper", "both")
DATA = ("natural", "cifar10", "mnist")


def settings(recipe: str, data: str | None, quick: bool, extra: tuple[str, ...] = ()) -> list[Setting]:
    """One setting a recipe; a quick look needs no download, so it is on the photographs unless told otherwise."""
    choice("--recipe", recipe, RECIPES)
    data = data or ("natural" if quick else "cifar10")
    choice("--data", data, DATA)
    recipes = ("default", "paper") if recipe == "both" else (recipe,)
    return [Setting(name, data, quick, extra) for name in recipes]


def reproduce(chosen: list[Experiment], setting: Setting, jobs: int, root: Path) -> None:
    """All runs of the chosen experiments, then figures and verdicts of each."""
    work = [task for experiment in chosen for task in tasks(experiment, setting)]
    check_data(chosen, setting)
    began = time.monotonic()

    def say(outcome: Outcome, done: int) -> None:
        end = f"failed: {outcome.problem}" if outcome.problem else short(outcome.folder)
        name = f"{outcome.task.experiment} {outcome.task.key}"
        print(f"[{done}/{len(work)}] {name}  {outcome.seconds:.1f} s  {end}", flush=True)

    outcomes = perform_all(work, jobs, say)
    lists = [[outcomes[task] for task in work if task.experiment == e.name] for e in chosen]
    failed = sum(bool(outcome.problem) for outcome in outcomes.values())
    print(f"{len(work)} runs, {failed} failed, {time.monotonic() - began:.0f} s; figures and verdicts:")
    for experiment, verdicts in zip(chosen, conclude_all(chosen, setting, lists, root, jobs), strict=True):
        yes, no, unknown = held(verdicts)
        rest = f", {unknown} not measured" if unknown else ""
        where = folder_of(root, experiment.name, setting.recipe)
        print(f"{experiment.name:<26} {yes} of {yes + no} claims held{rest}  {short(str(where))}/figure.png")


def check_data(chosen: list[Experiment], setting: Setting) -> None:
    """Build the images once before all runs: one download, or one error, not one a run."""
    from sigmapca_cli.sources import build

    first = next((e for e in chosen if e.images), None)
    if first is not None:
        panel = next(panel for panel in first.panels if not panel.mnist)
        build(job(Task(first.name, panel.key, tuple(first.overrides(panel, setting)))).cfg.data)


def conclude_all(
    chosen: list[Experiment], setting: Setting, lists: list[list[Outcome]], root: Path, jobs: int
) -> list[list[Verdict]]:
    """Judge and draw every experiment."""
    if jobs == 1 or len(chosen) == 1:
        return [conclude_one(e.name, setting, found, root) for e, found in zip(chosen, lists, strict=True)]
    with pool(min(jobs, len(chosen))) as workers:
        futures = [
            workers.submit(conclude_one, e.name, setting, found, root)
            for e, found in zip(chosen, lists, strict=True)
        ]
        return [future.result() for future in futures]


def conclude_one(name: str, setting: Setting, outcomes: list[Outcome], root: Path) -> list[Verdict]:
    """`conclude` by name, as an experiment itself cannot be sent to another process."""
    with quiet():
        return conclude(EXPERIMENTS[name], setting, outcomes, root)


def main(
    names: list[str], everything: bool, data: str | None, quick: bool, jobs: int, recipe: str, docs: bool
) -> None:
    """What the command does."""
    refuse_several("reproduce", "start it without torchrun; --jobs N runs N processes")
    if everything and names:
        raise InputError("give either names or --all")
    if not everything and not names and not docs:
        raise InputError("name an experiment (--list shows them), or give --all")
    root = outputs_root(None) / "reproduce"
    chosen = list(EXPERIMENTS.values()) if everything else pick(names)
    for setting in settings(recipe, data, quick) if chosen else []:
        reproduce(chosen, setting, jobs or available_cores(), root)
    print(f"summary: {short(str(page.write_page(root)))}")
    if docs:
        page.write_docs(root, Path("docs/reproduction.md"))
        print("written: docs/reproduction.md")


def list_experiments() -> None:
    """One line an experiment."""
    for name, experiment in EXPERIMENTS.items():
        print(f"{name:<26} {experiment.title} ({len(experiment.panels)} runs)")
