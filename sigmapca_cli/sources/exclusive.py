"""Making a file once, whole, though many processes want it at the same moment.

The maker owns a hidden folder beside the file, as a run's process owns its run folder (`runs.lock`): so a maker that
was killed, on this machine, in another container or on another node, is succeeded, and a living one is waited for.
The file itself is only ever renamed into place, so two makers, which a stopped process may lead to, do no harm.
"""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sigmapca_cli.errors import InputError, RunFailed
from sigmapca_cli.runs.lock import FolderLock, InUse, read_owner
from sigmapca_cli.untrusted_files import refuse_link

POLL_SECONDS = 0.05
log = logging.getLogger("sigmapca")


def lock_folder(target: Path) -> Path:
    """Return the folder that the maker of `target` owns."""
    return target.with_name(f".{target.name}.making")


@contextmanager
def made_once(target: Path, wait_seconds: float = 3600) -> Iterator[bool]:
    """Yield True in the one process that must create `target`, False in the others, once it exists.

    The others wait while the creating process lives; if it dies, one of them takes over. Raise RunFailed after
    `wait_seconds`, or if the folder is not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = _taken(target, wait_seconds)
    except PermissionError as error:
        where = f"{target.parent} cannot be written to ({error.strerror})"
        raise RunFailed(
            f"{where}: set SIGMAPCA_DATA to another folder, or give another output path"
        ) from None
    try:
        # Between the look and the lock another process may have finished.
        yield lock is not None and not target.exists()
    finally:
        if lock is not None:
            _remove(lock)


def _taken(target: Path, wait_seconds: float) -> FolderLock | None:
    """Return the lock, None when the file is there; wait while another process makes it."""
    folder, deadline, told = lock_folder(target), time.monotonic() + wait_seconds, False
    while not target.exists() or _abandoned(folder):
        try:
            folder.mkdir(exist_ok=True)
            refuse_link(folder)
            return FolderLock(folder).acquire()
        except FileExistsError:
            refuse_link(folder)  # a file, or a link to nothing
        except InUse as problem:
            if time.monotonic() > deadline:
                raise RunFailed(f"{target} is being made for {wait_seconds:g} s: {problem}") from None
            if not told:
                log.info("%s is being made by another process: waiting for it", target)
            told = True
            time.sleep(POLL_SECONDS)
        except (FileNotFoundError, RunFailed):
            if folder.exists():  # else its owner has just removed it
                raise
    return None


def _abandoned(folder: Path) -> bool:
    """Return whether a maker was killed after the file was in its place: its folder is still there."""
    if not os.path.lexists(folder):
        return False
    with suppress(InputError, OSError):
        owner = read_owner(folder)
        return owner is not None and owner.alive() is False
    return False


def _remove(lock: FolderLock) -> None:
    """Remove the lock's folder, then release it.

    Renamed first: others may be about to look into it, and may take a new one of its name at once.
    """
    with suppress(OSError, InUse):
        lock.check()
        aside = tempfile.mkdtemp(prefix=f"{lock.folder.name}.", dir=lock.folder.parent)
        os.rename(lock.folder, aside)
        shutil.rmtree(aside, ignore_errors=True)
    lock.release()
