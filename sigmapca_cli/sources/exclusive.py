"""Creation of a file exactly once, in one step, even if many processes need it at the same time."""

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
    """Return the lock files of a target, lowest number first; only the one of highest number is valid."""
    found = target.parent.glob(f".{target.name}.lock.*")
    return sorted(found, key=lambda path: int(path.suffix[1:]))


def _owner_is_dead(lock: Path) -> bool:
    """Return True only if the owner ran on this host and has ended; an unreadable or remote owner counts as alive."""
    try:
        owner = json.loads(lock.read_text())
        here = owner["host"] == socket.gethostname()
        return here and process_start(int(owner["pid"])) != owner["started"]
    except (OSError, ValueError, KeyError):
        return False


def _try_lock(target: Path) -> Path | None:
    """Create the next lock file if there is none or the last owner is dead; return None if another process has it."""
    locks = _locks(target)
    if locks and not _owner_is_dead(locks[-1]):
        return None
    number = int(locks[-1].suffix[1:]) + 1 if locks else 0
    lock = target.with_name(f".{target.name}.lock.{number}")
    aside = target.with_name(f".{target.name}.owner.{socket.gethostname()}.{os.getpid()}.{id(locks)}")
    pid = os.getpid()
    aside.write_text(json.dumps({"pid": pid, "host": socket.gethostname(), "started": process_start(pid)}))
    try:
        # A hard link appears with its content and fails if the name exists: no reader sees an empty lock.
        os.link(aside, lock)
    except FileExistsError:
        return None
    finally:
        aside.unlink()
    return lock


@contextmanager
def made_once(target: Path, wait_seconds: float = 3600) -> Iterator[bool]:
    """Yield True in the one process that must create `target`, False in the others, once it exists.

    The others wait while the creating process lives; if it dies, one of them takes over. Raise RunFailed after
    `wait_seconds`, or if the folder is not writable.
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
                raise RunFailed(
                    f"{_locks(target)[-1]} is held by another process: remove this file if that process has ended"
                )
            time.sleep(POLL_SECONDS)
    except PermissionError as error:
        where = f"{target.parent} cannot be written to ({error.strerror})"
        raise RunFailed(
            f"{where}: set SIGMAPCA_DATA to another folder, or give another output path"
        ) from None
    try:
        # Another process may have finished between the check and the lock.
        yield lock is not None and not target.exists()
    finally:
        if lock is not None:
            for path in _locks(target):
                if path != lock:
                    path.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def replace_whole(aside: Path, target: Path) -> None:
    """Sync `aside` to disk, rename it to `target`, and sync the folder: readers see the whole file or none."""
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(aside, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse to sync a folder
            os.fsync(folder)
    finally:
        os.close(folder)
