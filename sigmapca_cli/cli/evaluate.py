"""`sigmapca evaluate RUN…`: metrics of finished runs, on the training data or on other data."""

from typing import Any

import typer


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command("evaluate", help="Compute the metrics of runs and store them in /evaluation.")(evaluate)


def evaluate(
    runs: list[str] = typer.Argument(..., metavar="RUN...", help="Runs: folders, names, or last."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a run."),
) -> None:
    """Evaluate each run and print a table, or JSON."""
    import json

    import numpy as np

    rows = {name: evaluated(name) for name in runs}
    if as_json:
        plain = {
            run: {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
            for run, values in rows.items()
        }
        print(json.dumps(plain, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    names = list(dict.fromkeys(k for values in rows.values() for k, v in values.items() if np.ndim(v) == 0))
    table = Table("metric", *rows, box=None, pad_edge=False)
    for name in names:
        table.add_row(
            name, *(f"{float(values[name]):.6g}" if name in values else "–" for values in rows.values())
        )
    Console().print(table)


def evaluated(name: str) -> dict[str, Any]:
    """The metrics of one run on its own training data, stored in the run."""
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.evaluation.evaluate import evaluate_solution
    from sigmapca_cli.runs.find import resolve
    from sigmapca_cli.runs.read import Run
    from sigmapca_cli.runs.write import write_evaluation
    from sigmapca_cli.sources import build

    run = Run.open(resolve(name))
    if run.filters is None or run.sigma is None:
        raise InputError(
            f"{run.folder}: nothing to evaluate, the run holds no solution (status {run.status})"
        )
    source = build(data_config(run.config))
    if source.p != run.filters.shape[0]:
        raise InputError(f"{run.folder}: filters of {run.filters.shape[0]} features, data of {source.p}")
    values = evaluate_solution(run.filters, run.sigma, run.encoder, source)
    write_evaluation(run.path, values)
    return values


def data_config(config: dict[str, Any]) -> Any:
    """The typed `data` group of a stored configuration; keys of a later version are refused in words."""
    import dataclasses

    from sigmapca_cli.errors import InputError
    from sigmapca_cli.sources.config import DataConfig

    stored = config.get("data", {})
    known = {field.name for field in dataclasses.fields(DataConfig)}
    if unknown := sorted(set(stored) - known):
        raise InputError(f"the run's configuration has data.{unknown[0]}, which this version does not know")
    return DataConfig(**stored)
