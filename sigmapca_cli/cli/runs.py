"""`sigmapca runs`: what has been run."""

import shutil
import sys
from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("runs", help="List runs, newest last.")(runs)


# The last columns are left out first where the terminal is too narrow for all.
COLUMNS = ("run", "status", "model", "a", "k", "seed", "loss", "mcc", "data", "seconds", "created")
NUMBERS = {"a", "k", "seed", "loss", "mcc", "seconds"}


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}"
    text = str(value)
    return text.removesuffix(".0") if text.replace(".", "", 1).isdigit() else text


def short_name(row: Any) -> str:
    """What `show` and the others find the run by: its hash, or sweep/number."""
    from sigmapca_cli.runs.find import FOLDER_NAME

    match = FOLDER_NAME.match(row.name)
    if match is None:
        return f"{row.folder.parent.name}/{row.name}"
    return match[2]


def listed(row: Any) -> dict[str, Any]:
    """A run's summary as one flat row."""
    return {
        "run": short_name(row),
        "status": row.status,
        "model": row.model,
        **{name: row.attrs.get(name) for name in ("a", "k", "seed", "data")},
        "loss": row.last.get("loss"),
        "mcc": row.evaluation.get("mcc"),
        "seconds": row.attrs.get("wall_seconds"),
        "created": str(row.attrs.get("created", ""))[5:16].replace("T", " "),
        "folder": str(row.folder),
        "error": row.error,
    }


def table_lines(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Header and rows as text, as many columns as fit the width."""
    cells = {name: [name, *(cell(row.get(name)) for row in rows)] for name in COLUMNS}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    shown: list[str] = []
    for name in COLUMNS:
        if len(shown) >= 5 and sum(widths[n] + 2 for n in [*shown, name]) - 2 > width:
            break
        shown.append(name)

    def aligned(name: str, text: str) -> str:
        return text.rjust(widths[name]) if name in NUMBERS else text.ljust(widths[name])

    return [
        "  ".join(aligned(name, cells[name][line]) for name in shown).rstrip()
        for line in range(len(rows) + 1)
    ]


def runs(
    folder: str = typer.Argument(None, help="Where to look; default: the outputs folder."),
    as_json: bool = typer.Option(False, "--json", help="One JSON array."),
) -> None:
    """Print a table, or JSON."""
    import json

    from sigmapca_cli.runs.find import find_runs

    found = [listed(row) for row in find_runs(folder)]
    if as_json:
        print(json.dumps(found, default=str, indent=1))
        return
    if not found:
        print("no runs here yet: `sigmapca train model=nlpca a=4` makes one")
        return
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 10_000
    print("\n".join(table_lines(found, width)))
