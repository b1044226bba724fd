"""Verdicts: a claim is judged by all repetitions, and left undecided where their spread covers the threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.reproduce.experiment import RELATIONS, Claim, Condition
from sigmapca_cli.reproduce.results import Missing, Results

Verdict = dict[str, Any]
HELD, NOT_HELD, UNDECIDED, NOT_MEASURED = "held", "not held", "undecided", "not measured"
STATES = (HELD, NOT_HELD, UNDECIDED, NOT_MEASURED)
SOLVERS = {"newton": "the Newton solver", "moments": "solver=moments"}


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
        verdict["note"] = f"{SOLVERS[results.setting.solver]} did not converge on {', '.join(unsettled)}"
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
