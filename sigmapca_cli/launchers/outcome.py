"""How the jobs of a sweep stand, read from their folders: the same for every launcher, and from any machine."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.launchers.adaptive import result_of
from sigmapca_cli.launchers.failures import REFUSED, is_finished
from sigmapca_cli.storage.format import CHECKPOINT_FILE, ERROR_FILE, FINISHED
from sigmapca_cli.storage.read import is_run_folder, summary, true_status
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT, read_bytes

if TYPE_CHECKING:
    from sigmapca_cli.composition.job import Job


@dataclass(frozen=True)
class Outcome:
    """One job: its number, its status (a run's, or `failed` before there was a run), and why it failed."""

    number: str
    status: str
    reason: str = ""
    overrides: tuple[str, ...] = ()
    exit_status: int = 1


def outcomes(sweep: Path) -> list[Outcome]:
    """Every job of a sweep that has begun, by number."""
    with os.scandir(sweep) as entries:
        names = [e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    found = (outcome(sweep / name) for name in sorted(names, key=lambda name: (len(name), name)))
    return [job for job in found if job]


def outcome(folder: Path) -> Outcome | None:
    """One job, or None where the folder is not one."""
    note, status = read_note(folder / ERROR_FILE), ""
    if is_run_folder(folder):
        try:
            status = true_status(summary(folder)["attrs"].get("status", "running"), folder)
        except InputError as problem:
            status, note = "failed", note or {"error": str(problem), "overrides": (), "status": 1}
    if status == FINISHED and note is not None and note["status"] != 1:
        note = None  # an older version noted here what another command was refused for
    note = read_note(folder.parent / REFUSED / f"{folder.name}.json") or note
    # A job at work has removed the note of its last attempt; one that is left is why the last attempt failed.
    if note is not None and status != "running":
        return Outcome(printable(folder.name), "failed", note["error"], note["overrides"], note["status"])
    return Outcome(printable(folder.name), status) if status else None


def read_note(path: Path) -> dict[str, Any] | None:
    """Return why the last attempt at a job failed: error, overrides and exit status (0 where it is not noted)."""
    try:
        noted = json.loads(read_bytes(path, NOTE_LIMIT))
        overrides = tuple(printable(str(given)) for given in noted.get("overrides", ()))
        return {
            "error": printable(str(noted.get("error"))),
            "overrides": overrides,
            "status": noted.get("status", 0),
        }
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, InputError):
        return {"error": "failed (its note is damaged; see train.log)", "overrides": (), "status": 1}


def is_done(job: Job, folder: Path) -> bool:
    """Return whether a folder holds the finished run of just this configuration; its data are not looked at."""
    if job.cfg.if_exists not in ("resume", "skip") or (folder / CHECKPOINT_FILE).exists():
        return False
    if not is_finished(folder, job.hash):
        return False
    # Where the objective is not known it is to be measured.
    return not job.cfg.objective or result_of(folder, job.cfg.objective) is not None


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
