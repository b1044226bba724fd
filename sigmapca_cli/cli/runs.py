"""`sigmapca runs`: what has been run."""

from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("runs", help="List runs, newest last.")(runs)


COLUMNS = ("run", "status", "model", "a", "k", "seed", "data", "loss", "mcc", "seconds")


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)


def listed(row: Any) -> dict[str, Any]:
    """A run's summary as one flat row."""
    return {
        "run": row.name,
        "status": row.status,
        "model": row.model,
        **{name: row.attrs.get(name) for name in ("a", "k", "seed", "data")},
        "loss": row.last.get("loss"),
        "mcc": row.evaluation.get("mcc"),
        "seconds": row.attrs.get("wall_seconds"),
        "folder": str(row.folder),
        "error": row.error,
    }


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
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, overflow="fold")
    for row in found:
        table.add_row(*(cell(row.get(name)) for name in COLUMNS))
    Console().print(table)
