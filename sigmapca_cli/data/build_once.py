"""Making a file once, whole, though many processes want it at the same moment.

The maker holds a lock beside the file. The system frees the lock when its holder ends, however it ends, so a maker
that was killed is succeeded, and a living one is waited for. The file itself is only ever renamed into place.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from sigmapca_cli.system.errors import RunFailed

POLL_SECONDS = 0.05
log = logging.getLogger("sigmapca")


@contextmanager
def made_once(target: Path, wait_seconds: float = 3600) -> Iterator[bool]:
    """Yield True in the one process that must create `target`, False in the others, once it exists.

    The others wait while the creating process lives; if it dies, one of them takes over. Raise RunFailed after
    `wait_seconds`, or if the folder is not writable.
    """
    place = target.with_name(f".{target.name}.lock")
    if target.exists() and not place.exists():  # a maker that was killed at its end leaves its lock
        yield False
        return
    lock = FileLock(place)
    _acquire(lock, target, wait_seconds)
    try:
        # Between the look and the lock another process may have finished.
        yield not target.exists()
    finally:
        place.unlink(missing_ok=True)  # who waits for it sees that, and takes a new one
        lock.release()


def _acquire(lock: FileLock, target: Path, wait_seconds: float) -> None:
    """Take the lock; say so once if that means to wait."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.info("%s is being made by another process: waiting for it", target)
            lock.acquire(timeout=wait_seconds, poll_interval=POLL_SECONDS)
    except Timeout:
        raise RunFailed(
            f"{target} is being made by another process for {wait_seconds:g} s: try again later"
        ) from None
    except OSError as error:
        raise RunFailed(
            f"{target.parent} cannot be written to ({error.strerror}): set SIGMAPCA_DATA to another folder, or give "
            "another output path"
        ) from None
