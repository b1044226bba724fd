"""Making a file once, whole, though many processes want it at the same moment."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sigmapca_cli.errors import RunFailed
from sigmapca_cli.processes import process_start

POLL_SECONDS = 0.05


def _locks(target: Path) -> list[Path]:
    """Lock files of a target, lowest number first; the highest one counts."""
    found = target.parent.glob(f".{target.name}.lock.*")
    return sorted(found, key=lambda path: int(path.suffix[1:]))


def _owner_is_dead(lock: Path) -> bool:
    """True only when the owner ran on this host and is gone; unreadable or foreign owners count as alive."""
    try:
        owner = json.loads(lock.read_text())
        here = owner["host"] == socket.gethostname()
        return here and process_start(int(owner["pid"])) != owner["started"]
    except (OSError, ValueError, KeyError):
        return False


def _try_lock(target: Path) -> Path | None:
    """Create the next lock file, when there is none or the last owner is dead. O_EXCL: one winner."""
    locks = _locks(target)
    if locks and not _owner_is_dead(locks[-1]):
        return None
    number = int(locks[-1].suffix[1:]) + 1 if locks else 0
    lock = target.with_name(f".{target.name}.lock.{number}")
    aside = target.with_name(f".{target.name}.owner.{socket.gethostname()}.{os.getpid()}.{id(locks)}")
    pid = os.getpid()
    aside.write_text(json.dumps({"pid": pid, "host": socket.gethostname(), "started": process_start(pid)}))
    try:
        # A hard link appears whole and fails where the name exists: a reader never sees an empty lock.
        os.link(aside, lock)
    except FileExistsError:
        return None
    finally:
        aside.unlink()
    return lock


@contextmanager
def made_once(target: Path, wait_seconds: float = 3600) -> Iterator[bool]:
    """Yield True to the one process that must make `target`, False to those that find it made.

    Others wait while the maker lives; when it dies without success, one of them takes over. RunFailed when
    `wait_seconds` pass, or the folder cannot be written to.
    """
    deadline = time.monotonic() + wait_seconds
    lock = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        while not target.exists():
            lock = _try_lock(target)
            if lock is not None:
                break
            if time.monotonic() > deadline:
                raise RunFailed(f"{_locks(target)[-1]} is held by another process: remove it if that is gone")
            time.sleep(POLL_SECONDS)
    except PermissionError as error:
        where = f"{target.parent} cannot be written to ({error.strerror})"
        raise RunFailed(f"{where}: set SIGMAPCA_DATA, or write elsewhere") from None
    try:
        # Between the look and the lock another process may have finished.
        yield lock is not None and not target.exists()
    finally:
        if lock is not None:
            for path in _locks(target):
                if path != lock:
                    path.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def replace_whole(aside: Path, target: Path) -> None:
    """fsync `aside`, move it onto `target` in one step, fsync the folder: readers see all or nothing."""
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(aside, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse to sync a folder
            os.fsync(folder)
    finally:
        os.close(folder)
