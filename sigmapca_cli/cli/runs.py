"""`sigmapca runs`: what has been run."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.runs.where import number
from sigmapca_cli.text import csv_cell, printable


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("runs", help="List runs, newest last.")(runs)


# The last columns are left out first where the terminal is too narrow for all.
COLUMNS = (
    "run",
    "status",
    "model",
    "a",
    "k",
    "seed",
    "converged",
    "loss",
    "mcc",
    "data",
    "seconds",
    "created",
)
NUMBERS = {"a", "k", "seed", "loss", "mcc", "seconds"}


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, list):
        return printable(",".join(map(str, value)))
    if isinstance(value, float):
        return f"{value:.5g}"
    text = printable(str(value))
    return text.removesuffix(".0") if text.replace(".", "", 1).isdigit() else text


def plain_cell(value: Any) -> Any:
    """Return a value for a file: tags as one text with commas."""
    return ",".join(value) if isinstance(value, list) else value


def table_lines(rows: list[dict[str, Any]], columns: Sequence[str], width: int | None) -> list[str]:
    """Header and rows as text; with a width, as many columns as fit it."""
    cells = {name: [printable(name), *(cell(row.get(name)) for row in rows)] for name in columns}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    shown: list[str] = []
    for name in columns:
        if width and len(shown) >= 5 and sum(widths[n] + 2 for n in [*shown, name]) - 2 > width:
            break
        shown.append(name)

    def aligned(name: str, text: str) -> str:
        return text.rjust(widths[name]) if name in NUMBERS else text.ljust(widths[name])

    return ["  ".join(aligned(n, cells[n][line]) for n in shown).rstrip() for line in range(len(rows) + 1)]


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
    from sigmapca_cli.checks import nearest
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.runs.find import find_runs
    from sigmapca_cli.runs.rows import as_row
    from sigmapca_cli.runs.where import condition

    if folder and not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder")
    rows = [as_row(row) for row in find_runs(folder)]
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
        key = sort.lstrip("-")

        def order(row: dict[str, Any]) -> tuple[float, str]:
            value = number(row.get(key))
            return (value, "") if value is not None else (float("inf"), str(row.get(key) or "~"))

        rows.sort(key=order, reverse=sort.startswith("-"))
    return rows, wanted


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
    columns: str = typer.Option(None, "--columns", metavar="A,B", help="These columns, any metric or knob."),
    as_json: bool = typer.Option(False, "--json", help="One JSON array."),
    as_csv: bool = typer.Option(False, "--csv", help="Comma-separated."),
    watch: bool = typer.Option(False, "--watch", help="Again every two seconds, until Ctrl-C."),
) -> None:
    """Print a table, JSON or CSV."""
    import json
    import time

    rows, shown = select(folder, where, sort, columns, tag or ())
    if as_json:
        print(json.dumps(rows, default=str, indent=1))
        return
    if as_csv:
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([csv_cell(name) for name in shown])
        writer.writerows(
            [["" if row.get(n) is None else csv_cell(plain_cell(row[n])) for n in shown] for row in rows]
        )
        return
    print(text_of(rows, shown, columns is not None, bool(where or tag)))
    while watch:
        time.sleep(2)
        rows, shown = select(folder, where, sort, columns, tag or ())
        start = "\x1b[H\x1b[2J" if sys.stdout.isatty() else "\n"
        print(
            start + text_of(rows, shown, columns is not None, bool(where or tag)),
            flush=True,
        )
