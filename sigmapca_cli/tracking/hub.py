"""All trackers of one run. What goes wrong in one of them becomes one line of warning, and never ends the run."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigmapca_cli.storage.format import TRACKERS_FILE
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT, read_bytes
from sigmapca_cli.tracking.protocols import Rows, Tracked, Tracker

CLASSES = {
    "tensorboard": ("sigmapca_cli.tracking.tensorboard", "TensorBoard"),
    "mlflow": ("sigmapca_cli.tracking.mlflow", "MLflow"),
    "wandb": ("sigmapca_cli.tracking.wandb", "WandB"),
}
"""Tracker: its module, which imports the library, and its class."""
PACKAGES = {"mlflow": "mlflow-skinny"}
log = logging.getLogger("sigmapca")


class Hub:
    """The trackers of one run that still work."""

    def __init__(self) -> None:
        self.open: dict[str, Tracker] = {}

    def begin(self, names: Iterable[str], run: Tracked) -> None:
        """Open these trackers, each with the id that it gave the run earlier; store the ids in the run's folder."""
        ids = read_ids(run.folder)
        for name in names:
            try:
                self.open[name] = open_tracker(name, replace(run, known=ids.get(name, "")))
            except Exception as problem:
                give_up(name, problem)
        if self.open:
            ids |= {name: tracker.id for name, tracker in self.open.items()}
            try:
                replace_file(run.folder / TRACKERS_FILE, json.dumps(ids, indent=1).encode())
            except Exception as problem:
                log.warning("%s could not be written: %s", run.folder / TRACKERS_FILE, in_one_line(problem))

    def log(self, rows: Rows) -> None:
        """Hand rows to every tracker, without values that are not finite."""
        finite = [(step, {n: v for n, v in values.items() if math.isfinite(v)}) for step, values in rows]
        finite = [(step, values) for step, values in finite if values]
        for name, tracker in list(self.open.items()):
            try:
                tracker.log(finite)
            except Exception as problem:
                del self.open[name]
                give_up(name, problem)

    def finish(self, status: str, evaluation: Mapping[str, Any]) -> None:
        """Hand every tracker the numbers of the evaluation, and close it."""
        results = numbers(evaluation)
        for name, tracker in self.open.items():
            try:
                tracker.finish(status, results)
            except Exception as problem:
                give_up(name, problem)
        self.open.clear()


def open_tracker(name: str, run: Tracked) -> Tracker:
    """Return the tracker of this name, open for a run. Raise InputError if its library is not installed."""
    module, kind = CLASSES[name]
    try:
        made: Any = getattr(importlib.import_module(module), kind)
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] != name:
            raise
        raise InputError(f"its package is not installed: pip install {PACKAGES.get(name, name)}") from None
    opened: Tracker = made(run)
    return opened


def give_up(name: str, problem: Exception) -> None:
    """Warn in one line that a tracker has failed."""
    log.warning("tracker=%s: %s; the run goes on without it", name, in_one_line(problem))


def in_one_line(problem: Exception) -> str:
    """Return what an exception says, in at most 200 signs."""
    text = " ".join(str(problem).split())[:200]
    return text if isinstance(problem, InputError) else f"{type(problem).__name__}: {text}"


def numbers(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """Return the entries of an evaluation that are one finite number."""
    found = {}
    for name, value in evaluation.items():
        try:
            number = float(value)
        except (TypeError, ValueError):  # an array, or a text
            continue
        if math.isfinite(number):
            found[name] = number
    return found


def key_of(config_hash: str, data_hash: str, created: str, folder: Path) -> str:
    """Return 16 hexadecimal digits that only this run has, and keeps when it goes on."""
    text = "\0".join((config_hash, data_hash, created, folder.name))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_ids(folder: Path) -> dict[str, str]:
    """Return {tracker: id} of a run's folder; ids of another form are left out, for the folder may be a stranger's."""
    try:
        noted = json.loads(read_bytes(folder / TRACKERS_FILE, NOTE_LIMIT))
        return {n: i for n, i in noted.items() if n in CLASSES and re.fullmatch(r"[\w-]{1,64}", str(i))}
    except (OSError, ValueError, AttributeError, RecursionError, InputError):
        return {}
