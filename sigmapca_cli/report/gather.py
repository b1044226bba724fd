"""What a report needs to know about its runs, and which settings its sliders move."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.evaluation.compare import differing
from sigmapca_cli.report.page import Axis, number
from sigmapca_cli.runs.find import UNREADABLE, find_runs, resolve
from sigmapca_cli.runs.read import Run, is_run_folder

MOST_AXES = 3
MOST_DRAWN = 60  # runs with pictures and configuration of their own; a table holds any number
CHOICES = ("model.name", "data.name")  # always told, besides the knobs of the top level


@dataclass(frozen=True)
class Report:
    """Runs, with what was left out of their folder in words."""

    runs: Sequence[Run]
    left_out: Sequence[str]

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """What was set differently, a value a run."""
        found = {
            name: [rounded(v) for v in row] for name, row in differing([r.config for r in self.runs]).items()
        }
        return {name: row for name, row in found.items() if len(set(row)) > 1}

    @cached_property
    def swept(self) -> dict[str, Sequence[str]]:
        """By what a person tells the runs apart: what was typed where that is enough, else the settings themselves."""
        typed = given(self.runs)
        if typed and told_apart(typed) == told_apart(self.settings):
            return {name: [rounded(v) for v in row] for name, row in telling(typed).items()}
        return telling(self.settings)

    @cached_property
    def filters(self) -> list[NDArray[np.float64] | None]:
        """What is drawn of each run; None for those that have no solution or are not drawn."""
        return [shown_filters(run) if i in self.drawn else None for i, run in enumerate(self.runs)]

    @cached_property
    def drawn(self) -> list[int]:
        """The runs that are drawn, spread evenly where there are too many."""
        count = min(len(self.runs), MOST_DRAWN)
        return sorted(set(np.linspace(0, len(self.runs) - 1, count).round().astype(int).tolist()))

    def named(self, i: int) -> str:
        """Run i by what it was set to, where that is short."""
        values = [f"{plain(n)}={row[i]}" for n, row in self.swept.items()]
        words = ", ".join(values)
        return words if values and len(words) <= 60 else short(self.runs[i])


def open_all(names: Sequence[str]) -> tuple[list[Run], list[str]]:
    """The runs meant by the names, whatever their status, and what was left out, in words.

    A folder of runs, such as a sweep, stands for all in it. InputError when there is no run at all.
    """
    runs: list[Run] = []
    left_out: list[str] = []
    for name in names:
        folder = Path(name)
        if folder.is_dir() and not is_run_folder(folder):
            for found in find_runs(folder):
                try:
                    if found.status == UNREADABLE:
                        raise InputError(found.error)
                    runs.append(Run.open(found.folder))
                except InputError as problem:  # one damaged file does not cost the report of the others
                    left_out.append(str(problem))
                    logging.getLogger("sigmapca").warning("left out: %s", problem)
        else:
            runs.append(Run.open(resolve(name)))
    unique = list({run.folder.resolve(): run for run in runs}.values())
    if not unique:
        raise InputError(f"no run to report in {', '.join(names)}" + (f": {left_out[0]}" if left_out else ""))
    return in_order(unique), left_out


def in_order(runs: list[Run]) -> list[Run]:
    """The jobs of a sweep by their number, not 1, 10, 11, 2; others as they come."""
    if len({run.folder.resolve().parent for run in runs}) == 1 and all(run.name.isdigit() for run in runs):
        return sorted(runs, key=lambda run: int(run.name))
    return runs


def short(run: Run) -> str:
    """A name that fits a table and still says which run it is: a job of a sweep is SWEEP/NUMBER."""
    return run.name if len(run.name) > 8 else f"{run.folder.resolve().parent.name}/{run.name}"


def shown_filters(run: Run) -> NDArray[np.float64] | None:
    """What a person calls the filters of a run (p, k): W, and for linear ICA the unmixing's columns, of unit norm.

    There W only whitens; its columns are the principal directions whatever was found.
    """
    if run.rotation is None or run.encoder is None:
        return run.filters
    norm = np.linalg.norm(run.encoder, axis=0)
    return np.asarray(run.encoder / np.where(norm > 0, norm, 1.0))


def last_value(run: Run, name: str) -> float:
    """The last finite value of a logged metric, nan without one."""
    for value in reversed(run.metrics.get(name, [])):
        if math.isfinite(value):
            return float(value)
    return math.nan


def scalar(run: Run, name: str) -> float:
    """A metric of the evaluation, nan without one."""
    value = run.evaluation.get(name, math.nan)
    return float(value) if isinstance(value, int | float) else math.nan


def axes_of(settings: Mapping[str, Sequence[str]], runs: int) -> tuple[list[Axis], list[tuple[int, ...]]]:
    """The sliders for settings {name: a value a run}, and where on them each run is.

    Settings that change together count as one. Where the settings do not tell the runs apart, or fill less than half
    of the grid that they span, one slider moves over the runs instead.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in telling(settings):
        groups.setdefault(_split(settings[name]), []).append(name)
    chosen: dict[tuple[int, ...], Axis] = {}
    for group in groups.values():
        values = ordered(settings[group[0]])
        codes = tuple(values.index(value) for value in settings[group[0]])
        words = [", ".join(settings[name][codes.index(c)] for name in group) for c in range(len(values))]
        chosen[codes] = Axis(", ".join(plain(name) for name in group), words)
    keys = list(zip(*chosen, strict=True))
    spanned = math.prod(len(axis.values) for axis in chosen.values())
    if chosen and len(chosen) <= MOST_AXES and len(set(keys)) == runs and 2 * runs >= spanned:
        return list(chosen.values()), keys
    names = [", ".join(f"{axis.name} {axis.values[c[i]]}" for c, axis in chosen.items()) for i in range(runs)]
    one = Axis(
        "run", [f"{i + 1}" + (f": {name}" if name and len(name) < 40 else "") for i, name in enumerate(names)]
    )
    return [one], [(i,) for i in range(runs)]


def telling(settings: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The settings that a person would name: without nonlinearity.a where it only follows `a`, and the like."""
    found: dict[str, Sequence[str]] = {}
    for name in sorted(settings, key=_plainness):
        known = {_split(row) for row in found.values()}
        if "." not in name or name in CHOICES or _split(settings[name]) not in known:
            found[name] = settings[name]
    return found


def given(runs: Sequence[Run]) -> dict[str, list[str]]:
    """What was typed differently on the command line, a value a run; nothing where a run does not say."""
    typed = [dict(text.lstrip("+~").split("=", 1) for text in run.overrides if "=" in text) for run in runs]
    return differing(typed) if all(typed) else {}


def told_apart(settings: Mapping[str, Sequence[str]]) -> int:
    """How many different runs the settings make."""
    return len(set(zip(*settings.values(), strict=True)))


def plain(name: str) -> str:
    """model for model.name."""
    return name.removesuffix(".name")


def ordered(values: Sequence[str]) -> list[str]:
    """Distinct values: numbers by size, words as they come."""
    distinct = list(dict.fromkeys(values))
    numbers = [number(value) for value in distinct]
    if any(value is None for value in numbers):
        return distinct
    return sorted(distinct, key=float)


def _split(row: Sequence[str]) -> tuple[int, ...]:
    """How a setting divides the runs, whatever its values: two that divide them alike are one setting."""
    first: dict[str, int] = {}
    return tuple(first.setdefault(value, len(first)) for value in row)


def _plainness(name: str) -> tuple[int, int, str]:
    """Sorts the knobs of the top level first, then the names of groups: model.name before model.objective."""
    return name.count("."), 0 if name.endswith(".name") else 1, name


def rounded(value: str) -> str:
    """4 for 4.0: the same number, however it was typed."""
    return value[:-2] if value.endswith(".0") and value[:-2].lstrip("-").isdigit() else value
