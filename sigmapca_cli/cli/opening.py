"""What several commands do: open runs by name, and build a run's data again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sigmapca_cli.storage.format import FINISHED
from sigmapca_cli.system.errors import InputError


def open_run(name: str) -> Any:
    """The run meant by a name; InputError when it holds no solution yet."""
    from sigmapca_cli.storage.find import resolve
    from sigmapca_cli.storage.read import StoredRun

    run = StoredRun.open(resolve(name))
    if run.filters is None or run.sigma is None:
        raise InputError(f"{run.folder}: this run holds no solution (status {run.status})")
    return run


def open_runs(names: Sequence[str], least: int = 2) -> list[Any]:
    """Runs by name; a folder of runs, such as a sweep, stands for all finished ones in it."""
    from sigmapca_cli.storage.read import is_run_folder

    runs = []
    for name in names:
        folder = Path(name)
        if folder.is_dir() and not is_run_folder(folder):
            runs += finished_in(folder)
        else:
            runs.append(open_run(name))
    folders = [run.folder.resolve() for run in runs]
    for run in runs:
        if folders.count(run.folder.resolve()) > 1:
            raise InputError(f"{run.short_name}: given twice; a run always agrees with itself")
    if len(runs) < least:
        raise InputError(
            f"{len(runs)} finished run{'s' * (len(runs) != 1)} given, {least} or more are needed"
        )
    return runs


def finished_in(folder: Path) -> list[Any]:
    """The finished runs in a folder; one damaged file is told, and does not keep the others from being compared."""
    import logging

    from sigmapca_cli.storage.find import find_runs
    from sigmapca_cli.storage.read import StoredRun

    runs = []
    for found in find_runs(folder):
        try:
            if found.error:
                raise InputError(found.error)
            if found.status == FINISHED:
                runs.append(StoredRun.open(found.folder))
        except InputError as problem:
            logging.getLogger("sigmapca").warning("left out: %s", problem)
    return runs
