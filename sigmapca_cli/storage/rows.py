"""A run's summary as one flat row, which `sigmapca runs` lists and a table of runs holds; and conditions on rows.

A condition such as `a>2 and model==nlpca or status!=finished` is read without evaluating any code.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.storage.folders import FOLDER_NAME, short_name
from sigmapca_cli.system.errors import InputError

COLUMNS = (
    "run", "status", "model", "a", "k", "seed", "converged", "loss", "mcc", "data", "seconds", "created",
)  # fmt: skip
"""Those that a list of runs shows; the last are left out first where the terminal is too narrow for all."""


def as_rows(runs: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the summaries of runs as flat rows.

    "run" is what `show` and the others find each by: its hash, SWEEP/NUMBER, or its folder where others have its hash.
    """
    rows = [as_row(run) for run in runs]
    hashes = Counter(row["run"] for row in rows)
    for row in rows:
        if hashes[row["run"]] > 1:
            row["run"] = short_name(Path(row["folder"]))
    return rows


def as_row(row: Any) -> dict[str, Any]:
    """Return a run's summary as one flat row."""
    match = FOLDER_NAME.match(row.name)
    return {
        "run": match[2] if match else short_name(row.folder),
        "status": row.status,
        "model": row.model,
        "a": a if (a := number(row.attrs.get("a"))) is not None else row.attrs.get("a"),
        **{name: row.attrs.get(name) for name in ("k", "seed", "data")},
        "tags": str(tags).split(",") if (tags := row.attrs.get("tags")) else None,
        "note": row.attrs.get("note") or None,
        "converged": yes_no(row.attrs.get("converged")),
        "loss": row.last.get("loss"),
        "mcc": row.evaluation.get("mcc"),
        "step": row.step,
        "seconds": row.attrs.get("wall_seconds"),
        **{name: value for name, value in row.evaluation.items() if name not in ("mcc", "converged")},
        "created": str(row.attrs.get("created", ""))[:19].replace("T", " "),
        "folder": str(row.folder),
        "error": row.error,
    }


def yes_no(converged: Any) -> str | None:
    """Return yes or no; None for a run that has not stored it."""
    return None if converged is None or converged == "" else "yes" if converged else "no"


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq,
}  # fmt: skip
TERM = re.compile(
    r"""\s*([\w.]+)\s*(==|!=|<=|>=|<|>|=)\s*("[^"]*"|'[^']*'|[^\s<>=!]\S*)(?:\s+(and|or)\s+|\s*$)"""
)
"""NAME OPERATOR VALUE, and what leads to the next comparison; within quotes `and` and `or` are part of the value."""

LISTS = ("tags",)
"""Columns that hold a list of words: a run without the list has none of them."""

Row = Mapping[str, Any]


def number(value: Any) -> float | None:
    """The value as a number, where it is one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def term(name: str, sign: str, right: str, names: list[str]) -> Callable[[Row], bool]:
    """One comparison: as numbers where both sides are, else as words; a row without the value does not match."""
    if name not in names:
        raise InputError(f"--where: no column {name}{nearest(name, names)}; columns: {', '.join(names)}")
    compare, wanted = OPERATORS[sign], number(right)

    def holds(row: Row) -> bool:
        value = row.get(name)
        if isinstance(value, list):  # tags: == is having this one, != is not having it
            return sign in ("==", "=", "!=") and (right in value) == (sign != "!=")
        if value is None:
            return sign == "!=" and name in LISTS
        found = number(value)
        if found is not None and wanted is not None:
            return compare(found, wanted)
        if sign not in ("==", "=", "!="):
            return False
        return compare(str(value), right)

    return holds


def condition(text: str, names: list[str]) -> Callable[[Row], bool]:
    """The whole condition; `and` binds closer than `or`."""
    alternatives: list[list[Callable[[Row], bool]]] = [[]]
    place, joined = 0, None
    while place == 0 or joined:
        match = TERM.match(text, place)
        if not match:
            rest = text[place:].strip()
            raise InputError(f"--where: cannot read {rest!r}; write NAME OPERATOR VALUE, as in 'a>2'")
        name, sign, right, joined = match.groups()
        alternatives[-1].append(term(name, sign, right.strip("\"'"), names))
        place = match.end()
        if joined == "or":
            alternatives.append([])
    return lambda row: any(all(t(row) for t in terms) for terms in alternatives)
