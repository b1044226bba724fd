"""Signs of life: the owner of a folder touches a file, and others watch it by their own clock.

Clocks of two machines need not agree: the observer asks only whether the file's time *changes* while its own
monotonic clock runs.
"""

import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from sigmapca_cli.storage.owner import LONGEST_LEASE, Owner
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import open_regular

BEATS = 6  # touches in the time of a lease
POLL = 0.25  # seconds between two looks
log = logging.getLogger("sigmapca")

# Owners that were watched for the time of their lease: a sweep has many folders of one.
_gone: set[tuple[str, str, str, int, str]] = set()
# Owners whose watch was announced: who waits for a file to be made watches its maker again and again.
_announced: set[tuple[str, int]] = set()


def beat_file(folder: Path, number: int) -> Path:
    """Return the file that owner `number` touches."""
    return folder / f".beat.{number}"


class Beat(threading.Thread):
    """Touches a file `BEATS` times in a lease until `stop`. Threads do not survive a fork: a child touches nothing."""

    def __init__(self, path: Path, lease: float) -> None:
        super().__init__(name="lease", daemon=True)
        self.path, self.pause, self.ended = path, lease / BEATS, threading.Event()
        with contextlib.suppress(OSError, InputError):  # a disk that refuses ends nothing
            os.close(open_regular(path, os.O_WRONLY | os.O_CREAT))
        self.start()

    def run(self) -> None:
        """Touch and wait. A file that is gone stays away: the folder may be another one by now."""
        while True:
            with contextlib.suppress(OSError):
                os.utime(self.path, follow_symlinks=False)
            if self.ended.wait(self.pause):
                return

    def stop(self) -> None:
        """Touch the file no longer."""
        self.ended.set()
        self.join()


def last_beat(path: Path) -> int | None:
    """Return the time of a file, as its file system gives it after opening (NFS asks the server then)."""
    try:
        handle = open_regular(path)
    except (OSError, InputError):
        return None
    try:
        return os.fstat(handle).st_mtime_ns
    finally:
        os.close(handle)


def is_gone(folder: Path, number: int, owner: Owner) -> bool:
    """Watch owner `number` until it gives a sign of life (False), or for the time of its lease without one (True)."""
    if owner.process in _gone:
        return True
    lease = min(owner.lease, LONGEST_LEASE)
    began, first = time.monotonic(), last_beat(beat_file(folder, number))
    if (str(folder), number) not in _announced:
        log.warning("%s: owned by %s; watching for %g s whether that is still there", folder, owner, lease)
    _announced.add((str(folder), number))
    # Two beats more: the last one may have been late.
    while time.monotonic() - began < lease * (1 + 2 / BEATS):
        if last_beat(beat_file(folder, number)) != first:
            return False
        time.sleep(POLL)
    _gone.add(owner.process)
    return True


def looks_gone(folder: Path, number: int, owner: Owner) -> bool:
    """Return whether the last sign of life is long past by this machine's clock: a guess, for listings only."""
    seen = last_beat(beat_file(folder, number))
    return seen is None or time.time() - seen / 1e9 > 5 * min(owner.lease, LONGEST_LEASE)
