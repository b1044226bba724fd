"""Make a folder for a run, or take an empty one, for one process alone."""

import os
import re
from datetime import datetime
from pathlib import Path

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.system.errors import InputError, SigmapcaError


def create_run_folder(root: str | os.PathLike[str] | None, model: str, config_hash: str) -> Path:
    """Make `<root>/<model>/<date>_<time>_<hash>/`, which nobody else has: a taken name gets `_2`, `_3`, …

    Raises InputError where the outputs folder cannot be written.
    """
    if not re.fullmatch(r"[\w.+-]+", model) or model.startswith("."):
        raise InputError(f"model.name={model!r}: names a folder of runs: letters, digits, _ and - only")
    parent = outputs_root(root) / model
    stem = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{config_hash[:8]}"
    number = 1
    while True:
        folder = parent / (stem if number == 1 else f"{stem}_{number}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            return folder
        except FileExistsError as error:
            if not parent.is_dir():
                raise _no_outputs(parent, error) from error
            number += 1
        except OSError as error:
            raise _no_outputs(parent, error) from error


def claim_folder(folder: str | os.PathLike[str]) -> Path:
    """Make exactly this folder (`--run-dir`), or take it when it is empty, for this process alone.

    The process owns the folder from here on, and the next `FolderLock` in the same process goes on from that: else
    two processes that found it empty could follow each other. What a run leaves behind that was killed before
    its first run.h5 does not count. Raises InputError when the folder holds anything else, or another process
    has claimed it (InUse).
    """
    path = Path(folder).expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        _refuse_occupied(path)  # first of all, so that nothing is left in a folder that is not ours
        lock = FolderLock(path).acquire()
        try:
            _refuse_occupied(path)
        except SigmapcaError:
            lock.release()
            raise
        lock.reserve()
    except OSError as error:
        raise _no_outputs(path, error) from error
    return path


def _refuse_occupied(path: Path) -> None:
    if any(not _left_behind(entry.name) for entry in path.iterdir()):
        raise InputError(f"{path}: the run folder is not empty; give another one, or resume that run")


def _left_behind(name: str) -> bool:
    asides = name.startswith(".") and name.endswith(".aside")
    return name.startswith((".owner", ".beat")) or asides or name in (fmt.LOG_FILE, fmt.ERROR_FILE)


def _no_outputs(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder}: cannot make a run folder here ({error.strerror}); choose a folder you may write to "
        f"with {fmt.OUTPUTS_VARIABLE} or outputs=…"
    )
