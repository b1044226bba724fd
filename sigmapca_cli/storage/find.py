"""Find runs: list a folder of them, and turn what a user types into one run folder."""

import contextlib
import difflib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import read_whole, unsurveyed
from sigmapca_cli.storage.folders import FOLDER_NAME, age_key, outputs_root, run_folders
from sigmapca_cli.storage.read import StoredRun, is_run_folder, summary, true_status
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_hdf5 import Budget, as_text, item_in

UNREADABLE = "unreadable"


@dataclass
class RunSummary:
    """One line of a listing. `error` says why an `unreadable` run could not be read."""

    folder: Path
    status: str
    model: str = ""
    created: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    evaluation: dict[str, Any] = field(default_factory=dict)
    step: int | None = None
    shape: list[int] | None = None
    error: str = ""

    @property
    def name(self) -> str:
        return self.folder.name


def summarise_folder(folder: Path) -> RunSummary:
    """Read one run for a listing; one that cannot be read is listed as such and ends nothing."""
    try:
        found = summary(folder)
        attrs = found["attrs"]
        status = true_status(attrs.get("status", fmt.RUNNING), folder)
    except InputError as error:
        # Of a job of a sweep the parent folder is no model.
        model = folder.parent.name if FOLDER_NAME.match(folder.name) else ""
        return RunSummary(folder, UNREADABLE, model=model, error=str(error))
    return RunSummary(
        folder,
        status,
        model=attrs.get("model") or folder.parent.name,
        created=attrs.get("created", ""),
        attrs=attrs,
        last=found["last"],
        evaluation=found["evaluation"],
        step=found["step"],
        shape=found["shape"],
    )


def find_runs(root: str | os.PathLike[str] | None = None) -> list[RunSummary]:
    """All runs under the outputs folder, oldest first."""
    return [summarise_folder(folder) for folder in sorted(run_folders(root), key=age_key)]


def resolve(name: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> Path:
    """The run folder meant by what a user types.

    That is a path (the folder, or the run.h5 in it), a folder name, `model/folder`, the beginning of the hash
    (4 signs or more) where only one run has it, or `last`. Raises InputError with the nearest names when
    there is none, or with the candidates when there are several.
    """
    text = os.fspath(name)
    path = Path(text).expanduser()
    if path.is_file() and path.name == fmt.RUN_FILE:
        return path.parent
    if path.is_dir() and is_run_folder(path):
        return path
    folders = sorted(run_folders(root), key=age_key)
    if not folders:
        raise InputError(f"no run {text!r}: there are no runs in {outputs_root(root)}")
    if text == "last":
        return folders[-1]
    return _only(text, _candidates(text, folders), folders, outputs_root(root))


def shortened(folder: Path) -> str:
    """Return a path for people: relative to here where it lies below, with escapes for control characters."""
    with contextlib.suppress(ValueError, OSError):  # the working folder may have been deleted
        return printable(str(folder.resolve().relative_to(Path.cwd())))
    return printable(str(folder))


def _candidates(text: str, folders: list[Path]) -> list[Path]:
    wanted = Path(text.strip("/")).parts
    exact = [f for f in folders if wanted and f.parts[-len(wanted) :] == wanted]
    if exact or not re.fullmatch(r"[0-9a-fA-F]{4,}", text):
        return exact
    matches = [(f, FOLDER_NAME.match(f.name)) for f in folders]
    found = [f for f, match in matches if match and match.group(2).startswith(text[:8].lower())]
    unnamed = [f for f, match in matches if not match]  # the jobs of a sweep are only numbered
    inside = {f: str(summarise_folder(f).attrs.get("config_hash", "")) for f in unnamed}
    return found + [f for f, stored in inside.items() if stored.startswith(text.lower())]


def _only(text: str, found: list[Path], folders: list[Path], root: Path) -> Path:
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{f.parent.name}/{f.name}" for f in found[-4:])
        raise InputError(
            f"{text!r} means {len(found)} runs ({names}{', …' if len(found) > 4 else ''}); say which"
        )
    known = {}
    for folder in folders:
        match = FOLDER_NAME.match(folder.name)
        known[folder.name] = folder.name
        if match:
            known[match.group(2)] = folder.name
    near = difflib.get_close_matches(text, known, n=3, cutoff=0.5)
    nearest = list(dict.fromkeys(known[n] for n in near)) or [folders[-1].name]
    raise InputError(f"no run {text!r} in {root}; nearest: {', '.join(nearest)}")


def glance(found: RunSummary) -> StoredRun:
    """Return a run with its attributes, its configuration, and the last value of each metric; arrays when asked for.

    Its evaluation has numbers and texts only. A run that has not ended is opened as `StoredRun.open` does. Raise
    InputError for a damaged file.
    """
    run = StoredRun(found.folder, found.folder / fmt.RUN_FILE)
    if found.attrs.get("status", fmt.RUNNING) == fmt.RUNNING:
        return StoredRun.open(found.folder)
    read_whole(run.path)
    config, overrides = texts_in(run.path, ("config", "overrides"))
    last = {name: np.array([math.nan if value is None else value]) for name, value in found.last.items()}
    vars(run).update(
        attrs=found.attrs,
        status=found.status,
        evaluation=found.evaluation,
        metrics=last,
        config_yaml=config,
        overrides=overrides.splitlines(),
    )
    return run


def is_whole(run: StoredRun) -> bool:
    """Return whether all that a run holds has been looked at."""
    return "_contents" in vars(run)


def texts_in(path: Path, names: Sequence[str]) -> list[str]:
    """Return texts at the top of an HDF5 file, "" for one that it lacks. Raise InputError for a damaged file."""
    texts = []
    with unsurveyed(path) as file:
        root = h5py.h5g.open(file.id, b"/")
        for name in names:
            item = item_in(root, name.encode()) if name.encode() in root else None
            value = "" if item is None or item.shape != () else Budget(0).read(h5py.Dataset(item.id))[()]
            texts.append(as_text(value))
    return texts
