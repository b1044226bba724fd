"""`sigmapca log RUN… --to TRACKER PLACE`: show stored runs in TensorBoard, MLflow or Weights & Biases."""

from pathlib import Path
from typing import Any

import typer

from sigmapca_cli.cli.opening import open_runs
from sigmapca_cli.settings.checks import choice
from sigmapca_cli.storage.folders import FOLDER_NAME
from sigmapca_cli.system.errors import RunFailed


def log(
    runs: list[str] = typer.Argument(..., help="Runs, or folders of runs such as a sweep."),
    to: tuple[str, str] = typer.Option(
        ...,
        "--to",
        metavar="TRACKER PLACE",
        help="tensorboard FOLDER, mlflow FILE.db, FOLDER or URI, or wandb PROJECT.",
    ),
) -> None:
    """Log every run, and say where. A run that was logged there before is gone on with, not doubled."""
    from sigmapca_cli.settings.schema import TRACKERS
    from sigmapca_cli.tracking.hub import in_one_line

    tracker, place = to
    choice("--to", tracker, TRACKERS)
    found = {run.folder.resolve(): run for name in runs for run in open_runs([name], least=1)}
    for run in found.values():
        try:
            copy(run, tracker, place)
        except Exception as problem:
            raise RunFailed(f"{run.folder}: {tracker}: {in_one_line(problem)}") from problem
    print(f"{len(found)} run{'s' * (len(found) != 1)} logged to {tracker}: {place}")


def copy(run: Any, tracker: str, place: str) -> None:
    """Log one stored run: its configuration, its metrics and the numbers of its evaluation."""
    import math

    from sigmapca_cli.tracking.hub import numbers, open_tracker

    steps = run.metrics.get("step", ())
    rows = [
        (int(step), {n: float(v[i]) for n, v in run.metrics.items() if n != "step" and math.isfinite(v[i])})
        for i, step in enumerate(steps)
    ]
    opened = open_tracker(tracker, described(run, place))
    opened.log([(step, values) for step, values in rows if values])
    opened.finish(run.status, numbers(run.evaluation))


def described(run: Any, place: str) -> Any:
    """Return what a tracker is told about a stored run."""
    from sigmapca_cli.tracking.hub import key_of
    from sigmapca_cli.tracking.protocols import Tracked, flat

    folder: Path = run.folder.resolve()
    attrs = run.attrs
    return Tracked(
        name=run.short_name,
        folder=folder,
        key=key_of(
            attrs.get("config_hash", ""), attrs.get("data_hash", ""), attrs.get("created", ""), folder
        ),
        group="" if FOLDER_NAME.match(folder.name) else folder.parent.name,
        config=flat(run.config),
        tags=[tag for tag in str(attrs.get("tags", "")).split(",") if tag],
        note=str(attrs.get("note", "")),
        place=place,
    )
