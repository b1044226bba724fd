"""`sigmapca runs`: what has been run."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.tables import print_csv, print_json, refuse_two_forms, table
from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.storage.rows import COLUMNS, as_rows, condition, number
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable

NUMBER_COLUMNS = {"a", "k", "seed", "loss", "mcc", "seconds"}


def cell(value: Any, name: str) -> str:
    """A value of a column as a table shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, list):
        return printable(",".join(map(str, value)))
    if isinstance(value, float):
        return f"{value:.5g}"
    text = printable(str(value))
    if name == "created":
        return text[5:16]  # month, day, hour and minute
    return text.removesuffix(".0") if text.replace(".", "", 1).isdigit() else text


def table_lines(rows: list[dict[str, Any]], columns: Sequence[str], width: int | None) -> list[str]:
    """Header and rows as text; with a width, as many columns as fit it."""
    cells = [[cell(row.get(name), name) for name in columns] for row in rows]
    shown = len(columns)
    if width:
        widths = [max(map(len, (name, *(line[i] for line in cells)))) + 2 for i, name in enumerate(columns)]
        fitting = [i for i in range(shown + 1) if i <= 5 or sum(widths[:i]) - 2 <= width]
        shown = min(shown, fitting[-1])
    left = {i for i, name in enumerate(columns) if name not in NUMBER_COLUMNS}
    header = [printable(name) for name in columns[:shown]]
    return table(header, [line[:shown] for line in cells], left).splitlines()


def default_columns(rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns of the table: tags behind the model and notes at the end, where a run has some."""
    names = list(COLUMNS)
    if any(row["tags"] for row in rows):
        names.insert(names.index("model") + 1, "tags")
    return [*names, "note"] if any(row["note"] for row in rows) else names


def select(
    folder: str | None,
    where: str | None,
    sort: str | None,
    columns: str | None,
    tags: Sequence[str] = (),
) -> tuple[list[Any], list[str]]:
    """The rows asked for in their order, and the columns to show."""
    from sigmapca_cli.storage.find import find_runs

    if folder and not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder")
    rows = as_rows(find_runs(folder))
    names = list(
        dict.fromkeys([*COLUMNS, "folder", "error", "tags", "note", *(name for row in rows for name in row)])
    )
    wanted = [name.strip() for name in columns.split(",")] if columns else default_columns(rows)
    for name in [*wanted, *([sort.lstrip("-")] if sort else [])]:
        if name not in names:
            raise InputError(f"no column {name}{nearest(name, names)}; columns: {', '.join(names)}")
    rows = [row for row in rows if set(tags) <= set(row["tags"] or ())]
    if where:
        holds = condition(where, names)
        rows = [row for row in rows if holds(row)]
    if sort:
        rows = in_order(rows, sort.lstrip("-"), falling=sort.startswith("-"))
    return rows, wanted


def in_order(rows: list[dict[str, Any]], key: str, *, falling: bool) -> list[dict[str, Any]]:
    """Return the rows by a column: numbers before words, and in either direction runs without the value at the end."""

    def order(row: dict[str, Any]) -> tuple[bool, float, str]:
        value = number(row[key])
        return value is None, value or 0.0, "" if value is not None else str(row[key])

    known = [row for row in rows if row.get(key) not in (None, "", []) and row[key] == row[key]]
    return sorted(known, key=order, reverse=falling) + [row for row in rows if row not in known]


def text_of(rows: list[dict[str, Any]], columns: list[str], given: bool, filtered: bool = False) -> str:
    """The table for this terminal; columns that were asked for are all shown."""
    if not rows and filtered:
        return "no run matches"
    if not rows:
        return "no runs here yet: `sigmapca train model=nlpca a=4` makes one"
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() and not given else None
    return "\n".join(table_lines(rows, columns, width))


def runs(
    folder: str = typer.Argument(None, help="Where to look; default: the outputs folder."),
    where: str = typer.Option(None, "--where", metavar="CONDITION", help="'a>2 and model==nlpca'"),
    sort: str = typer.Option(None, "--sort", metavar="COLUMN", help="By a column; -COLUMN for falling."),
    tag: list[str] = typer.Option(
        None, "--tag", metavar="TAG", help="Only runs with this tag (and this, …)."
    ),
    columns: str = typer.Option(None, "--columns", metavar="A,B", help="These columns; any metric too."),
    as_json: bool = typer.Option(False, "--json", help="One JSON array."),
    as_csv: bool = typer.Option(False, "--csv", help="Comma-separated."),
    watch: bool = typer.Option(False, "--watch", help="Again every two seconds, until Ctrl-C."),
) -> None:
    """Print a table, JSON or CSV."""
    import time

    refuse_two_forms(as_json, as_csv)
    rows, shown = select(folder, where, sort, columns, tag or ())
    filtered = bool(where or tag)
    if as_json:
        print_json(rows)
        return
    if as_csv:
        cells = ([row.get(name) for name in shown] for row in rows)
        print_csv(shown, ([",".join(c) if isinstance(c, list) else c for c in row] for row in cells))  # tags
        return
    print(text_of(rows, shown, columns is not None, filtered))
    while watch:
        time.sleep(2)
        rows, shown = select(folder, where, sort, columns, tag or ())
        start = "\x1b[H\x1b[2J" if sys.stdout.isatty() else "\n"
        print(start + text_of(rows, shown, columns is not None, filtered), flush=True)
