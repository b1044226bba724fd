"""How the jobs of a sweep stand, read from their folders: the same for every launcher, and from any machine."""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.runs.format import ERROR_FILE
from sigmapca_cli.runs.read import is_run_folder, summary, true_status


@dataclass(frozen=True)
class Outcome:
    """One job: its number, its status (a run's, or `failed` before there was a run), and why it failed."""

    number: str
    status: str
    reason: str = ""
    overrides: tuple[str, ...] = ()


def outcomes(sweep: Path) -> list[Outcome]:
    """Every job of a sweep that has begun, by number."""
    folders = [folder for folder in sweep.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    jobs = [
        job for folder in sorted(folders, key=lambda f: (len(f.name), f.name)) if (job := outcome(folder))
    ]
    return jobs


def outcome(folder: Path) -> Outcome | None:
    """One job, or None where the folder is not one."""
    note = read_note(folder)
    status = ""
    if is_run_folder(folder):
        try:
            status = true_status(summary(folder)["attrs"].get("status", "running"), folder)
        except InputError as problem:
            status, note = "failed", note or {"error": str(problem)}
    # A job at work has removed the note of its last attempt; one that is left is why the last attempt failed.
    if note is not None and status != "running":
        return Outcome(folder.name, "failed", str(note.get("error")), tuple(note.get("overrides", ())))
    return Outcome(folder.name, status) if status else None


def read_note(folder: Path) -> dict[str, Any] | None:
    """Why the last attempt at the job failed."""
    try:
        return json.loads((folder / ERROR_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {"error": "failed (its note is damaged; see train.log)"}


def table(jobs: list[Outcome], common: Collection[str] = (), told: Collection[str] = ()) -> list[str]:
    """What a sweep ends with: how many of each, then what failed, named by what is not common to all, and why.

    The reason is left out for the numbers in `told`, whose failure was said when it happened.
    """
    counts = Counter(job.status for job in jobs)
    head = ", ".join(
        f"{counts[name]} {name}"
        for name in ("finished", "failed", "interrupted", "running")
        if counts[name] or name == "finished"
    )
    failed = [job for job in jobs if job.status == "failed"]
    lines = []
    for job in failed:
        own = " ".join(o for o in job.overrides if o not in common)
        why = "failed, as said above" if job.number in told else job.reason
        lines.append(f"  job {job.number}{f' ({own})' if own else ''}: {why}")
    return [head, *lines]
