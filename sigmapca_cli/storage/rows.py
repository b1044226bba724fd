"""A run's summary as one flat row: what `sigmapca runs` lists, and what a table of runs holds."""

from typing import Any

from sigmapca_cli.storage.folders import FOLDER_NAME
from sigmapca_cli.storage.where import number

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
"""Those that a list of runs shows; the last are left out first where the terminal is too narrow for all."""


def as_row(row: Any) -> dict[str, Any]:
    """Return a run's summary as one flat row."""
    match = FOLDER_NAME.match(row.name)
    return {
        # What `show` and the others find the run by: its hash, or sweep/number.
        "run": match[2] if match else f"{row.folder.parent.name}/{row.name}",
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
        "created": str(row.attrs.get("created", ""))[5:16].replace("T", " "),
        "folder": str(row.folder),
        "error": row.error,
    }


def yes_no(converged: Any) -> str | None:
    """Return yes or no; None for a run that has not stored it."""
    return None if converged is None or converged == "" else "yes" if converged else "no"
