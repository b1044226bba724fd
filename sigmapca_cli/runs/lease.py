"""Signs of life: the owner of a folder touches a file, and others watch it by their own clock.

Clocks of two machines need not agree: the observer asks only whether the file's time *changes* while its own
monotonic clock runs. One thread touches the files of all folders that this process owns.
"""

import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from sigmapca_cli.errors import InputError
from sigmapca_cli.runs.owner import LONGEST_LEASE, Owner
from sigmapca_cli.untrusted_files import open_regular

BEATS = 6  # touches in the time of a lease
POLL = 0.25  # seconds between two looks
log = logging.getLogger("sigmapca")


def beat_file(folder: Path, number: int) -> Path:
    """Return the file that owner `number` touches."""
    return folder / f".beat.{number}"


class Heart:
    """Touches files from a thread of its own, as long as there are any."""

    def __init__(self) -> None:
        self.files: dict[Path, float] = {}
        self.guard = threading.Lock()
        self.wake = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self, path: Path, lease: float) -> None:
        """Touch a file until `stop`, `BEATS` times in `lease` seconds."""
        touch(path)
        with self.guard:
            self.files[path] = lease / BEATS
            if self.thread is None or not self.thread.is_alive():  # none, or one that a fork left behind
                self.wake = threading.Event()
                self.thread = threading.Thread(target=self.run, name="lease", daemon=True)
                self.thread.start()
        self.wake.set()

    def stop(self, path: Path) -> None:
        """Touch this file no longer, and remove it."""
        with self.guard:
            self.files.pop(path, None)
            last, thread = not self.files, self.thread
            if last:
                self.thread = None
        if last and thread is not None and thread.is_alive():
            self.wake.set()
            thread.join()
        with contextlib.suppress(OSError):
            path.unlink()

    def run(self) -> None:
        """Touch and wait, until there is no file left."""
        while True:
            with self.guard:
                files = dict(self.files)
            if not files:
                return
            for path in files:
                touch(path)
            self.wake.wait(min(files.values()))
            self.wake.clear()


def touch(path: Path) -> None:
    """Change a file's time, and make it where it is missing; a disk that refuses ends nothing."""
    with contextlib.suppress(OSError, InputError):
        handle = open_regular(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.utime(handle)
        finally:
            os.close(handle)


heart = Heart()
os.register_at_fork(after_in_child=heart.__init__)  # type: ignore[misc]  # a child owns nothing

# Owners that were watched for the time of their lease: a sweep has many folders of one.
_gone: set[tuple[str, str, str, int, str]] = set()
# Owners whose watch was announced: who waits for a file to be made watches its maker again and again.
_announced: set[tuple[str, int]] = set()


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
