"""The runs of a report, the settings that distinguish them, and the sliders over these settings."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.on_disk.progress import paced
from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.evaluation.compare import differing
from sigmapca_cli.report.page import Axis, number
from sigmapca_cli.storage.find import UNREADABLE, find_runs, glance, is_whole, resolve
from sigmapca_cli.storage.read import StoredRun, is_run_folder
from sigmapca_cli.system.errors import InputError

MOST_AXES = 3  # sliders
MOST_DRAWN = 60  # runs shown with pictures and configuration; the table lists all runs
CHOICES = ("model.name", "data.name")  # always named if they differ, like the settings of the top level


@dataclass(frozen=True)
class Report:
    """The runs of a report; left_out: one sentence for each run that could not be read."""

    runs: Sequence[StoredRun]
    left_out: Sequence[str]

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """The settings that differ, each with one value per run."""
        rows = {
            name: [rounded(v) for v in row] for name, row in differing([r.config for r in self.runs]).items()
        }
        return {name: row for name, row in rows.items() if len(set(row)) > 1}

    @cached_property
    def swept(self) -> dict[str, Sequence[str]]:
        """The settings that distinguish the runs: those of the command line if they suffice, else all that differ."""
        typed = given(self.runs)
        if typed and distinct_runs(typed) == distinct_runs(self.settings):
            return {name: [rounded(v) for v in row] for name, row in without_followers(typed).items()}
        return without_followers(self.settings)

    @cached_property
    def filters(self) -> list[NDArray[np.float64] | None]:
        """The filters drawn for each run; None for a run that has no solution or is not drawn."""
        return [run.directions if i in self.drawn else None for i, run in enumerate(self.runs)]

    @cached_property
    def drawn(self) -> list[int]:
        """Indices of the runs that are drawn: all, or evenly spaced ones if there are too many."""
        return [int(i) for i in evenly_spaced(len(self.runs), MOST_DRAWN)]

    def named(self, i: int) -> str:
        """Return a name of run i: its settings if they are short, else the name of its folder."""
        values = [f"{plain(n)}={row[i]}" for n, row in self.swept.items()]
        words = ", ".join(values)
        return words if values and len(words) <= 60 else self.runs[i].short_name


def open_all(names: Sequence[str]) -> tuple[list[StoredRun], list[str]]:
    """Open the named runs, of any status; return them, and one sentence for each unreadable run.

    A folder of runs, such as a sweep, means all runs in it. Raise InputError if there is no run at all.
    """
    runs: list[StoredRun] = []
    left_out: list[str] = []
    for name in names:
        folder = Path(name)
        if folder.is_dir() and not is_run_folder(folder):
            summaries = find_runs(folder)
            words = f"reading {len(summaries):,} runs takes about {{time}} more"
            for found in paced(summaries, itertools.repeat(1.0), len(summaries), words):
                try:
                    if found.status == UNREADABLE:
                        raise InputError(found.error)
                    runs.append(with_configuration(glance(found)))
                except InputError as problem:
                    leave_out(problem, left_out)
        else:
            runs.append(StoredRun.open(resolve(name)))
    unique = with_drawn_whole(in_order(list({run.place: run for run in runs}.values())), left_out)
    if not unique:
        raise InputError(f"no run to read in {', '.join(names)}" + (f": {left_out[0]}" if left_out else ""))
    return unique, left_out


def with_configuration(run: StoredRun) -> StoredRun:
    """Return the run. Raise InputError if what its file holds as configuration cannot be read."""
    _ = run.config  # it is read when it is first asked for
    return run


def leave_out(problem: InputError, left_out: list[str]) -> None:
    """Say why a run is left out: one damaged run must not prevent the report of the others."""
    left_out.append(str(problem))
    logging.getLogger("sigmapca").warning("left out: %s", problem)


def with_drawn_whole(runs: list[StoredRun], left_out: list[str]) -> list[StoredRun]:
    """Return the runs, those that are drawn with all that they hold; without those that then turn out damaged."""
    while True:
        for i in evenly_spaced(len(runs), MOST_DRAWN):
            run = runs[i]
            try:
                runs[i] = run if is_whole(run) else with_configuration(StoredRun.open(run.folder))
            except InputError as problem:
                leave_out(problem, left_out)
                runs = [*runs[:i], *runs[i + 1 :]]
                break  # others are drawn now
        else:
            return runs


def in_order(runs: list[StoredRun]) -> list[StoredRun]:
    """Return the jobs of a sweep sorted by number (1, 2, 10, not 1, 10, 2); other runs in the given order."""
    if len({run.place.parent for run in runs}) == 1 and all(run.name.isdigit() for run in runs):
        return sorted(runs, key=lambda run: int(run.name))
    return runs


def last_loss(run: StoredRun) -> float:
    """Return the last finite loss of the log, nan if there is none."""
    for value in reversed(run.metrics.get("loss", [])):
        if math.isfinite(value):
            return float(value)
    return math.nan


def scalar(run: StoredRun, name: str) -> float:
    """Return a metric of the evaluation, nan if the run does not have it."""
    value = run.evaluation.get(name, math.nan)
    return float(value) if isinstance(value, int | float) else math.nan


def axes_of(settings: Mapping[str, Sequence[str]], runs: int) -> tuple[list[Axis], list[tuple[int, ...]]]:
    """Return the sliders for settings {name: one value per run}, and the position of each run on them.

    Settings that change together share a slider. If the settings do not distinguish all runs, or the runs fill less
    than half of the grid of settings, there is one slider over the runs instead.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in without_followers(settings):
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
    over_runs = Axis(
        "run", [f"{i + 1}" + (f": {name}" if name and len(name) < 40 else "") for i, name in enumerate(names)]
    )
    return [over_runs], [(i,) for i in range(runs)]


def without_followers(settings: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the settings without those that only follow another one, as nonlinearity.a follows `a`."""
    leading: dict[str, Sequence[str]] = {}
    for name in sorted(settings, key=_by_level):
        known = {_split(row) for row in leading.values()}
        if "." not in name or name in CHOICES or _split(settings[name]) not in known:
            leading[name] = settings[name]
    return leading


def given(runs: Sequence[StoredRun]) -> dict[str, list[str]]:
    """Return the command-line settings that differ, one value per run; {} if a run does not store its command line."""
    typed = [dict(text.lstrip("+~").split("=", 1) for text in run.overrides if "=" in text) for run in runs]
    return differing(typed) if all(typed) else {}


def distinct_runs(settings: Mapping[str, Sequence[str]]) -> int:
    """Return the number of runs that the settings distinguish."""
    return len(set(zip(*settings.values(), strict=True)))


def plain(name: str) -> str:
    """Return a setting's name without ".name": model for model.name."""
    return name.removesuffix(".name")


def ordered(values: Sequence[str]) -> list[str]:
    """Return the distinct values: numbers by size, words in the given order."""
    distinct = list(dict.fromkeys(values))
    numbers = [number(value) for value in distinct]
    if any(value is None for value in numbers):
        return distinct
    return sorted(distinct, key=float)


def _split(row: Sequence[str]) -> tuple[int, ...]:
    """Return how a setting divides the runs, without its values; settings that divide them equally count as one."""
    first: dict[str, int] = {}
    return tuple(first.setdefault(value, len(first)) for value in row)


def _by_level(name: str) -> tuple[int, int, str]:
    """Return a sort key: settings of the top level first, and in a group its name (model.name) first."""
    return name.count("."), 0 if name.endswith(".name") else 1, name


def rounded(value: str) -> str:
    """Return "4" for "4.0": the same number has one text."""
    return value[:-2] if value.endswith(".0") and value[:-2].lstrip("-").isdigit() else value
