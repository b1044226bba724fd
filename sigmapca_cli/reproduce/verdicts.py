"""Judge the claims of an experiment by all repetitions, draw it, and write the files of its folder."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli import __version__
from sigmapca_cli.figures.save import save
from sigmapca_cli.reproduce.engine import Outcome, short
from sigmapca_cli.reproduce.experiment import RELATIONS, Claim, Condition, Experiment
from sigmapca_cli.reproduce.plan import Setting, name_of
from sigmapca_cli.reproduce.results import Missing, Results, last_loss
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError

Verdict = dict[str, Any]
HELD, NOT_HELD, UNDECIDED, NOT_MEASURED = "held", "not held", "undecided", "not measured"
STATES = (HELD, NOT_HELD, UNDECIDED, NOT_MEASURED)
SOLVERS_IN_WORDS = {"newton": "the Newton solver", "moments": "solver=moments"}


@dataclass(frozen=True)
class Spread:
    """What one number was over the repetitions.

    low and high: from the least to the greatest value, and at least one standard deviation (n − 1) on either side of
    the mean. One value alone has no spread.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the repetitions."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Standard deviation over the repetitions, 0 for one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def low(self) -> float:
        """The lower end of the spread."""
        return min(*self.values, self.mean - self.std)

    @property
    def high(self) -> float:
        """The upper end of the spread."""
        return max(*self.values, self.mean + self.std)


def state_of(spread: Spread, relation: str, threshold: float) -> str:
    """Return held where the whole spread fulfils the relation, not held where none of it does, else undecided."""
    if not all(math.isfinite(value) for value in spread.values):
        return NOT_HELD
    ends = {RELATIONS[relation](end, threshold) for end in (spread.low, spread.high)}
    return UNDECIDED if len(ends) == 2 else HELD if True in ends else NOT_HELD


def measured(condition: Condition, results: Results) -> dict[str, Any]:
    """Return what a condition came to: its values, mean, spread and state. Raises Missing where a run is not there."""
    spread = Spread(tuple(float(condition.value(results.at(r))) for r in distinct(condition, results)))
    found: dict[str, Any] = {
        "measure": condition.measure,
        "relation": condition.relation,
        "threshold": condition.threshold,
        "values": list(spread.values),
        "state": state_of(spread, condition.relation, condition.threshold),
    }
    if not all(math.isfinite(value) for value in spread.values):
        return {**found, "values": [], "value": None, "note": "the value is not finite"}
    return {**found, "value": spread.mean, "std": spread.std, "low": spread.low, "high": spread.high}


def distinct(condition: Condition, results: Results) -> range:
    """Return the repetitions that can differ: only the first one where no run that is asked for has a seed."""
    before = set(results.asked)
    results.asked.clear()
    try:
        condition.value(results.at(0))
        drawn = results.depends_on_seed()
    finally:
        results.asked |= before
    return range(results.repetitions if drawn else 1)


def judge(claim: Claim, results: Results) -> Verdict | None:
    """Return the verdict on one claim; None where it is not about what this way made.

    A solver answers for its own runs: a claim that needs a run which it does not make, or none that it made, is left
    out.
    """
    verdict: Verdict = {"claim": claim.text, "ours": claim.ours}
    first = claim.conditions[0]
    empty = {
        "measure": first.measure,
        "relation": first.relation,
        "threshold": first.threshold,
        "value": None,
    }
    results.asked.clear()
    problem = ""
    try:
        found = [measured(condition, results) for condition in claim.conditions]
    except Missing as missing:
        problem = str(missing)
    except KeyError as missing:
        problem = f"not measured by this run: {missing.args[0]}"
    if not results.own():
        return None
    if problem:
        return {**verdict, **empty, "state": NOT_MEASURED, "values": [], "note": problem}
    verdict |= found[0]
    if len(found) > 1:
        verdict |= {"also": found[1], "state": together([part["state"] for part in found])}
    if unsettled := [key for key in results.unsettled() if key in results.asked]:
        verdict["note"] = (
            f"{SOLVERS_IN_WORDS[results.setting.solver]} did not converge on {', '.join(unsettled)}"
        )
    return verdict


def together(states: list[str]) -> str:
    """Return the state of a claim that asks for several things: the worst of theirs."""
    for state in (NOT_MEASURED, NOT_HELD, UNDECIDED):
        if state in states:
            return state
    return HELD


def count(verdicts: list[Verdict]) -> dict[str, int]:
    """Return how many of these verdicts are in each state."""
    found = [state(verdict) for verdict in verdicts]
    return {name: found.count(name) for name in STATES}


def state(verdict: Verdict) -> str:
    """Return the state of a verdict; files of older versions say true, false or null."""
    older = {True: HELD, False: NOT_HELD, None: NOT_MEASURED}
    return str(verdict["state"]) if "state" in verdict else older[verdict["held"]]


WAYS = ("default", "paper", "newton", "moments")
TABLE_COLUMNS = (
    "explained_variance", "reconstruction_error", "orthogonality_error", "correlation", "mcc", "steps",
    "relative_gradient", "converged",
)  # fmt: skip


def folder_of(root: Path, name: str, way: str) -> Path:
    """outputs/reproduce/NAME for our recipe; paper/ in it for the authors' own, newton/ and moments/ for these."""
    return root / name if way == "default" else root / name / way


def conclude(experiment: Experiment, setting: Setting, outcomes: list[Outcome], root: Path) -> list[Verdict]:
    """Open the runs, judge every claim, and write figure.png, figure.pdf, numbers.csv and verdicts.json."""
    runs, problems = {}, {}
    for outcome in outcomes:
        if outcome.problem:
            problems[outcome.task.key] = outcome.problem
        else:
            runs[outcome.task.key] = StoredRun.open(outcome.folder)
    results = Results(experiment.panels, setting, runs, problems, setting.repetitions(experiment.seeds))
    folder = folder_of(root, experiment.name, setting.way)
    folder.mkdir(parents=True, exist_ok=True)
    judged = [judge(claim, results) for claim in experiment.claims if claim.applies(setting)]
    verdicts = [verdict for verdict in judged if verdict is not None]
    save(experiment.draw(results), folder / "figure", dpi=110)
    replace_file(folder / "numbers.csv", numbers(experiment, results).encode())
    text = json.dumps(report(experiment, results, verdicts), indent=1, ensure_ascii=False)
    replace_file(folder / "verdicts.json", text.encode())
    return verdicts


def report(experiment: Experiment, results: Results, verdicts: list[Verdict]) -> dict[str, Any]:
    """What verdicts.json holds."""
    setting = results.setting
    solved = {"solved": results.solved(), "unsettled": results.unsettled(), "runs": len(results.runs)}
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "caption": experiment.caption,
        "recipe": setting.recipe,
        "solver": setting.solver,
        **({setting.solver: solved} if setting.solver in SOLVERS_IN_WORDS else {}),
        "data": setting.data if experiment.images else "synthetic",
        "quick": setting.quick and experiment.images,
        "seeds": results.repetitions,
        "command": command(experiment, setting),
        "version": __version__,
        "verdicts": verdicts,
        "failed": results.problems,
    }


def command(experiment: Experiment, setting: Setting) -> str:
    """The command that makes this figure alone."""
    words = ["sigmapca", "reproduce", experiment.name]
    if experiment.images:
        words += ["--data", setting.data]
        words += ["--quick"] if setting.quick else []
    words += ["--seeds", str(setting.seeds)] if setting.seeds else []
    words += (
        ["--solver", setting.solver] if setting.solver in SOLVERS_IN_WORDS else ["--recipe", setting.recipe]
    )
    return " ".join(words)


def numbers(experiment: Experiment, results: Results) -> str:
    """One line a run: what was run, and what came out."""
    text = io.StringIO()
    names = ("panel", "loss", *TABLE_COLUMNS, "kurtosis_mean", "negentropy_mean", "sigma_first", "sigma_last")
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*names, "run", "command", "problem"])
    solved = results.solved()
    for panel, repetition in experiment.runs(results.setting):
        name = name_of(panel.key, repetition)
        where = experiment.command(panel, results.setting, repetition)
        where += f" solver={results.setting.solver}" if name in solved and not panel.solved else ""
        if name not in results.runs:
            table.writerow([name, *[""] * (len(names) - 1), "", where, results.problems.get(name)])
            continue
        row = [name, *(shown(value) for value in values(results.runs[name]))]
        table.writerow([*row, short(str(results.runs[name].folder)), where, ""])
    return text.getvalue()


def values(run: StoredRun) -> list[Any]:
    """The figures of one run, in the order of the table."""
    found, sigma = run.evaluation, run.sigma
    return [
        last_loss(run) if "loss" in run.metrics else None,
        *(found.get(name) for name in TABLE_COLUMNS),
        np.mean(found["kurtosis"]),
        np.mean(found["negentropy"]),
        *((sigma[0], sigma[-1]) if sigma is not None else (None, None)),
    ]


def shown(value: Any) -> str:
    """A number to six figures; nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    number = float(value)
    return f"{number:.6g}" if math.isfinite(number) else ""


def read_reports(root: Path, names: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """{(experiment, way): what verdicts.json holds}, of all that have been run."""
    found = {}
    for name in names:
        for way in WAYS:
            path = folder_of(root, name, way) / "verdicts.json"
            if path.exists():
                try:
                    found[name, way] = json.loads(path.read_text(encoding="utf-8"))
                except ValueError as problem:
                    raise InputError(f"{path}: not JSON ({problem}); run the experiment again") from None
    return found
