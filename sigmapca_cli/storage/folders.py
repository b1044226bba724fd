"""Where runs lie and how their folders are named; only the standard library, so that completion can list them."""

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sigmapca_cli.storage import format as fmt

FOLDER_NAME = re.compile(r"(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_([0-9a-f]+)(?:_(\d+))?$")
DEEPEST = 8  # folders below the root: a sweep nests two or three


def short_name(folder: Path) -> str:
    """Return a short name that says which run it is: its folder's, or PARENT/FOLDER where the folder has no date.

    So a job of a sweep is SWEEP/NUMBER.
    """
    place = folder.absolute()
    return place.name if FOLDER_NAME.match(place.name) else f"{place.parent.name}/{place.name}"


def outputs_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds all runs: the argument, else $SIGMAPCA_OUTPUTS, else ./outputs."""
    return Path(root or os.environ.get(fmt.OUTPUTS_VARIABLE) or "outputs").expanduser().absolute()


def run_folders(root: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Every run folder under the root, in no order; hidden folders and those inside runs are passed over."""
    yield from _walk(str(outputs_root(root)), 0)


def _walk(folder: str, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:  # gone meanwhile, or somebody else's private folder: a listing goes on
        return
    if any(entry.name in (fmt.RUN_FILE, fmt.METRICS_FILE) for entry in listed):
        yield Path(folder)
        return
    if depth < DEEPEST:
        for entry in listed:
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, depth + 1)


def age_key(folder: Path) -> tuple[str, int, int]:
    """Sorts folders by when they were made: from the name, else from the file that its first owner left.

    That file, written for the last time when its owner lets go, also orders the runs of one second. The
    folder's own time would not do: whoever draws a figure into a run changes it.
    """
    match = FOLDER_NAME.match(folder.name)
    made = 0
    for place in (folder / ".owner.1",) if match else (folder / ".owner.1", folder):
        with contextlib.suppress(OSError):
            made = place.stat().st_mtime_ns
            break
    if match:
        return match.group(1), made, int(match.group(3) or 1)
    return f"{datetime.fromtimestamp(made / 1e9):%Y-%m-%d_%H-%M-%S}", made, 0
