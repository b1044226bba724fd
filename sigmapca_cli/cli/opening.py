"""What several commands do: open runs by name, and build a run's data again."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def open_run(name: str) -> Any:
    """The run meant by a name; InputError when it holds no solution yet."""
    from sigmapca_cli.storage.find import resolve
    from sigmapca_cli.storage.read import StoredRun
    from sigmapca_cli.system.errors import InputError

    run = StoredRun.open(resolve(name))
    if run.filters is None or run.sigma is None:
        raise InputError(f"{run.folder}: this run holds no solution (status {run.status})")
    return run


def open_runs(names: Sequence[str], least: int = 2) -> list[Any]:
    """Runs by name; a folder of runs, such as a sweep, stands for all finished ones in it."""
    from sigmapca_cli.storage.find import find_runs
    from sigmapca_cli.storage.read import is_run_folder
    from sigmapca_cli.system.errors import InputError

    runs = []
    for name in names:
        folder = Path(name)
        if folder.is_dir() and not is_run_folder(folder):
            runs += readable(found.folder for found in find_runs(folder) if noted(found) == "finished")
        else:
            runs.append(open_run(name))
    folders = [run.folder.resolve() for run in runs]
    for run in runs:
        if folders.count(run.folder.resolve()) > 1:
            raise InputError(f"{short_run_name(run)}: given twice; a run always agrees with itself")
    if len(runs) < least:
        raise InputError(
            f"{len(runs)} finished run{'s' * (len(runs) != 1)} given, {least} or more are needed"
        )
    return runs


def noted(found: Any) -> str:
    """The status of a listed run; one that cannot be read is told, and passed over."""
    if found.error:
        skipped(found.error)
    return str(found.status)


def readable(folders: Iterable[Path]) -> list[Any]:
    """The runs in these folders; one damaged file does not keep the others from being compared."""
    from sigmapca_cli.storage.read import StoredRun
    from sigmapca_cli.system.errors import InputError

    runs = []
    for folder in folders:
        try:
            runs.append(StoredRun.open(folder))
        except InputError as problem:
            skipped(str(problem))
    return runs


def skipped(why: str) -> None:
    """One line of warning."""
    import logging

    logging.getLogger("sigmapca").warning("left out: %s", why)


def short_run_name(run: Any) -> str:
    """A name that fits a table and still says which run it is: a job of a sweep is SWEEP/NUMBER."""
    name: str = run.name
    return name if len(name) > 8 else f"{run.folder.resolve().parent.name}/{name}"
