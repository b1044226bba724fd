"""`sigmapca reproduce`: run what is missing, judge, draw, and write the summary."""

from __future__ import annotations

import json
import time
from pathlib import Path

from sigmapca_cli.reproduce import page, stored
from sigmapca_cli.reproduce.engine import (
    Each,
    Outcome,
    Planned,
    Task,
    crew,
    job,
    perform,
    plan,
    quiet,
    short,
    tasks,
    units,
)
from sigmapca_cli.reproduce.experiment import Experiment
from sigmapca_cli.reproduce.plan import Setting
from sigmapca_cli.reproduce.registry import EXPERIMENTS, in_paper, pick
from sigmapca_cli.reproduce.verdicts import (
    HELD,
    NOT_HELD,
    NOT_MEASURED,
    UNDECIDED,
    conclude,
    count,
    folder_of,
)
from sigmapca_cli.reproduce.verdicts import SOLVERS_IN_WORDS as NAMES
from sigmapca_cli.settings.checks import choice
from sigmapca_cli.settings.ways import Way, way_of
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import cores, refuse_several

MINUTES = Path(__file__).with_name("minutes.json")
RECIPES = ("default", "paper", "both")
DATA = ("natural", "cifar10", "mnist")
OFFERED_SOLVERS = ("stochastic", "newton", "moments")


def settings(
    recipe: str,
    data: str | None,
    quick: bool,
    extra: tuple[str, ...] = (),
    solver: str = "stochastic",
    seeds: int = 0,
) -> list[Setting]:
    """One setting a recipe; a quick look needs no download, so it is on the photographs unless told otherwise."""
    choice("--recipe", recipe, RECIPES)
    choice("--solver", solver, OFFERED_SOLVERS)
    data = data or ("natural" if quick else "cifar10")
    choice("--data", data, DATA)
    if solver != "stochastic" and recipe != "default":
        raise InputError(
            f"--recipe {recipe}: the paper's recipe is a way to train; --solver {solver} trains nothing"
        )
    recipes = ("default", "paper") if recipe == "both" else (recipe,)
    return [Setting(name, data, quick, extra, solver, seeds) for name in recipes]


def reproduce(chosen: list[Experiment], setting: Setting, jobs: int, root: Path) -> None:
    """All runs of the chosen experiments; figure and verdicts of each as soon as it has all of its own."""
    # What needs no run is the same whatever the recipe or the solver.
    chosen = [experiment for experiment in chosen if experiment.panels or setting.way == "default"]
    check_data(chosen, setting)
    began = time.monotonic()
    with crew(jobs) as each:
        waiting = {experiment: tasks(experiment, setting) for experiment in chosen}
        planned = plan_all(each, [task for own in waiting.values() for task in own])
        if setting.solver != "stochastic":
            waiting, planned = solvable(waiting, planned, setting.solver)
        outcomes: dict[Task, Outcome] = {}
        conclude_ready(waiting, outcomes, setting, root)
        for found in each(perform, units(planned)):
            for outcome in found:
                outcomes[outcome.task] = outcome
                tell(outcome, len(outcomes), len(planned))
            conclude_ready(waiting, outcomes, setting, root)
    failed = sum(bool(outcome.problem) for outcome in outcomes.values())
    print(f"{len(outcomes)} runs, {failed} failed, {time.monotonic() - began:.0f} s")


def conclude_ready(
    waiting: dict[Experiment, list[Task]], outcomes: dict[Task, Outcome], setting: Setting, root: Path
) -> None:
    """Judge and draw the experiments all of whose runs are there, and take them off the list."""
    for experiment in [e for e, own in waiting.items() if outcomes.keys() >= set(own)]:
        conclude_one(experiment, setting, [outcomes[task] for task in waiting.pop(experiment)], root)


def plan_all(each: Each, work: list[Task]) -> list[Planned]:
    """All tasks composed, in their order."""
    found = {one.tasks[0]: one for one in each(plan, work)}
    return [found[task] for task in work]


def tell(outcome: Outcome, done: int, of: int) -> None:
    """One line a run."""
    end = f"failed: {outcome.problem}" if outcome.problem else short(outcome.folder)
    count = f" each of {outcome.beside} side by side" if outcome.beside > 1 else ""
    name = f"{outcome.task.experiment} {outcome.task.key}"
    print(f"[{done}/{of}] {name}  {outcome.seconds:.1f} s{count}  {end}", flush=True)


def solvable(
    waiting: dict[Experiment, list[Task]], planned: list[Planned], solver: str
) -> tuple[dict[Experiment, list[Task]], list[Planned]]:
    """The experiments in which the solver has something to solve, with the runs that need no training."""

    def trained(one: Planned) -> bool:
        return one.job is not None and way_of(one.job.cfg) not in (Way.DIRECT, Way(solver))

    names = {one.tasks[0].experiment for one in planned if one.job and one.job.cfg.solver.name == solver}
    kept = [one for one in planned if one.tasks[0].experiment in names and not trained(one)]
    made = {one.tasks[0] for one in kept}
    for experiment in waiting:
        if experiment.name not in names:
            print(f"{experiment.name:<26} left out: {NAMES[solver]} knows none of its models")
    return (
        {e: [task for task in own if task in made] for e, own in waiting.items() if e.name in names},
        kept,
    )


def check_data(chosen: list[Experiment], setting: Setting) -> None:
    """Build the images once before all runs: one download, or one error, not one a run."""
    from sigmapca_cli.data import build

    first = next((e for e in chosen if e.images and e.panels), None)
    if first is not None:
        panel = next(panel for panel in first.panels if not panel.mnist)
        build(job(Task(first.name, panel.key, tuple(first.overrides(panel, setting)))).cfg.data)


def conclude_one(experiment: Experiment, setting: Setting, outcomes: list[Outcome], root: Path) -> None:
    """Judge and draw an experiment, and say how many claims held."""
    with quiet():
        verdicts = conclude(experiment, setting, outcomes, root)
    found = count([verdict for verdict in verdicts if not verdict["ours"]] or verdicts)
    rest = "".join(f", {found[name]} {name}" for name in (UNDECIDED, NOT_MEASURED) if found[name])
    figure = folder_of(root, experiment.name, setting.way) / "figure.png"
    share = f"{found[HELD]} of {found[HELD] + found[NOT_HELD] + found[UNDECIDED]} claims held"
    print(f"{experiment.name:<26} {share}{rest}  {short(str(figure))}", flush=True)


def main(
    names: list[str],
    everything: bool,
    data: str | None,
    quick: bool,
    jobs: int,
    recipe: str,
    docs: bool,
    solver: str,
    seeds: int = 0,
) -> None:
    """What the command does."""
    refuse_several("reproduce", "start it without torchrun; --jobs N runs N processes")
    if everything and names:
        raise InputError("give either names or --all")
    if not everything and not names and not docs:
        raise InputError("name an experiment (--list shows them), or give --all")
    root = outputs_root(None) / "reproduce"
    chosen = list(EXPERIMENTS.values()) if everything else pick(names)
    asked = settings(recipe, data, quick, solver=solver, seeds=seeds)
    for setting in asked if chosen else []:
        reproduce(chosen, setting, jobs or cores(), root)
    print(f"summary: {short(str(page.write_page(root)))}")
    if docs:
        made = stored.write_docs(root, Path("docs"))
        print(f"written: {', '.join(map(str, made))}")


def list_experiments() -> None:
    """One line an experiment: its name, the paper's figures, its title, its runs, and CPU minutes where measured.

    The minutes are those of one core, {experiment: {"full" or "quick": minutes}}, by benchmarks/minutes.py.
    """
    measured = json.loads(MINUTES.read_text("utf-8"))
    for name, experiment in EXPERIMENTS.items():
        found = measured.get(name, {})
        facts = [f"{len(experiment.runs(Setting()))} runs"]
        facts += [
            f"{words}{found[kind]:g} min"
            for kind, words in (("full", ""), ("quick", "quick "))
            if kind in found
        ]
        print(f"{name:<26} {in_paper(name):<18} {experiment.title} ({', '.join(facts)})")
    print("min: CPU minutes on one core, as measured once; quick: with --quick")
