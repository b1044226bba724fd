"""Who owns a run folder, what can be known of that process from here, and its signs of life.

Host names say little: every pod of a set may be called alike, and a container has its own processes. A process can be
seen only by those of the same start of the same machine and the same PID namespace. All others go by its lease: the
owner of a folder touches a file, and others watch it by their own clock.
Clocks of two machines need not agree: the observer asks only whether the file's time *changes* while its own
monotonic clock runs.
"""

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import boot_id, pid_space, process_start
from sigmapca_cli.system.untrusted_files import open_regular

DEFAULT_LEASE = 60.0  # seconds without a sign of life after which another machine may take a folder over
LONGEST_LEASE = 600.0  # a folder that claims more is not believed
NO_LONGER_WRITTEN = ("claim",)  # keys in the owner files of older versions


@dataclass(frozen=True)
class Owner:
    """Who owns, or owned, a run folder."""

    host: str
    boot: str
    pid: int
    started: str
    slurm_job_id: str = ""
    slurm_restarts: int = 0
    released: bool = False
    space: str = ""  # the namespaces in which pid and started are meant
    lease: float = 0.0  # seconds; 0: of a version that gave no signs of life
    token: str = ""  # of this hold alone: a copy of the folder has another; "" in older versions

    @property
    def process(self) -> tuple[str, str, str, int, str]:
        """What is the same for one process only."""
        return self.host if not self.space else "", self.boot, self.space, self.pid, self.started

    def visible(self) -> bool:
        """Return whether this process would be seen from here if it lived."""
        if not self.space:  # of an older version, or of a system without namespaces
            return self.host == socket.gethostname() and (self.boot == boot_id() or not self.lease)
        return self.boot == boot_id() and self.space == pid_space()

    def alive(self) -> bool | None:
        """Return True or False for a process that would be seen from here, None for any other."""
        if self.released:
            return False
        if not self.visible():
            return None
        # Another boot: the machine was started anew since.
        return self.boot == boot_id() and process_start(self.pid) == self.started

    def restarted_as(self, other: "Owner") -> bool:
        """Return whether this owner is an earlier start of the same SLURM job as `other`."""
        same_job = bool(self.slurm_job_id) and self.slurm_job_id == other.slurm_job_id
        return same_job and other.slurm_restarts > self.slurm_restarts

    def __str__(self) -> str:
        job = f" (SLURM job {self.slurm_job_id})" if self.slurm_job_id else ""
        return f"process {self.pid} on {self.host}{job}"

    def to_json(self) -> str:
        """Return the note that an owner file holds."""
        return json.dumps(asdict(self))


def owner_from(text: bytes) -> Owner:
    """Return the owner of a note; raise ValueError or TypeError where it is none, or a value has a type not ours."""
    noted = json.loads(text)
    owner = Owner(**{key: value for key, value in noted.items() if key not in NO_LONGER_WRITTEN})
    like = Owner("", "", 0, "")
    for each in fields(Owner):
        value, wanted = getattr(owner, each.name), type(getattr(like, each.name))
        if type(value) is not wanted and (wanted, type(value)) != (float, int):
            raise TypeError(f"{each.name} has another type")
    return owner


def lease_seconds() -> float:
    """Return the lease of this process: $SIGMAPCA_LEASE, else 60 seconds."""
    try:
        given = float(os.environ.get("SIGMAPCA_LEASE", DEFAULT_LEASE))
    except ValueError:
        return DEFAULT_LEASE
    return min(max(given, 1.0), LONGEST_LEASE)


def myself() -> Owner:
    """Return this process as an owner, with a new token."""
    restarts = os.environ.get("SLURM_RESTART_COUNT", "")
    return Owner(
        host=socket.gethostname(),
        boot=boot_id(),
        pid=os.getpid(),
        started=process_start(os.getpid()) or "unknown",
        slurm_job_id=os.environ.get("SLURM_JOB_ID", ""),
        slurm_restarts=int(restarts) if restarts.isdigit() else 0,
        space=pid_space(),
        lease=lease_seconds(),
        token=secrets.token_hex(8),
    )


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
