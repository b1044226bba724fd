"""One process owns a run folder.

Owners are numbered files `.owner.1`, `.owner.2`, … that are never removed: the highest number is the
present owner. A file appears complete and at most once (a hard link of a finished file, which fails when the
name is taken), and the next number is only created after the present owner was seen to be released or dead,
which it then stays. So of any number of processes that race for a folder exactly one wins. Taking over by
renaming or deleting a lock had two winners in some races.
"""

import contextlib
import json
import os
import re
import socket
import tempfile
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from sigmapca_cli.atomic import replace_file, write_failed
from sigmapca_cli.errors import InputError, RunFailed
from sigmapca_cli.processes import process_start
from sigmapca_cli.untrusted_files import NOTE_LIMIT, read_bytes


class InUse(InputError):
    """Another process owns the run folder."""


NAME = re.compile(r"\.owner\.(\d+)$")


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
    claim: bool = False  # made for `claim_folder`: the same process goes on to own the folder

    def alive(self) -> bool | None:
        """True or False for a process of this machine, None where that cannot be seen from here."""
        if self.released:
            return False
        if self.host != socket.gethostname():
            return None
        if self.boot != boot_id():
            return False  # the machine was started anew since
        return process_start(self.pid) == self.started

    def gives_way_to(self, other: "Owner") -> bool:
        """Whether `other` may take over: this owner is gone, or is an earlier start of the same SLURM job."""
        if self.claim and (self.host, self.pid, self.started) == (other.host, other.pid, other.started):
            return True
        alive = self.alive()
        if alive is not None:
            return not alive
        same_job = bool(self.slurm_job_id) and self.slurm_job_id == other.slurm_job_id
        return same_job and other.slurm_restarts > self.slurm_restarts


def owner_from(noted: dict[str, Any]) -> Owner:
    """Return the owner of a note; raise TypeError where the note is none, or a value has another type than ours."""
    owner, like = Owner(**noted), Owner("", "", 0, "")
    for field in fields(Owner):
        if type(getattr(owner, field.name)) is not type(getattr(like, field.name)):
            raise TypeError(f"{field.name} has another type")
    return owner


@cache
def boot_id() -> str:
    """Changes whenever the machine starts; "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def myself(claim: bool = False) -> Owner:
    """This process, as an owner."""
    return Owner(
        host=socket.gethostname(),
        boot=boot_id(),
        pid=os.getpid(),
        started=process_start(os.getpid()) or "unknown",
        slurm_job_id=os.environ.get("SLURM_JOB_ID", ""),
        slurm_restarts=int(os.environ.get("SLURM_RESTART_COUNT") or 0),
        claim=claim,
    )


def owner_number(folder: Path) -> int:
    """The highest owner number in the folder, 0 when it never had an owner."""
    matches = (NAME.match(entry.name) for entry in os.scandir(folder))
    return max((int(match.group(1)) for match in matches if match), default=0)


def read_owner(folder: str | os.PathLike[str]) -> Owner | None:
    """The present or last owner of a run folder, None when it never had one."""
    folder = Path(folder)
    number = owner_number(folder)
    if number == 0:
        return None
    path = folder / f".owner.{number}"
    try:
        return owner_from(json.loads(read_bytes(path, NOTE_LIMIT)))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: damaged lock file; remove it if no process uses the folder") from error


def is_owned(folder: str | os.PathLike[str]) -> bool:
    """Whether a process may be at work in the folder: certain on this machine, assumed for another one."""
    owner = read_owner(folder)
    return owner is not None and owner.alive() is not False


class FolderLock:
    """Holds a run folder from `acquire` to `release`, or as a context manager; it can be released twice.

    Raises InUse in one line when somebody else owns the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], claim: bool = False) -> None:
        self.folder = Path(folder)
        self.path: Path | None = None
        self.owner = myself(claim)

    def acquire(self) -> "FolderLock":
        number = owner_number(self.folder)
        present = read_owner(self.folder) if number else None
        if present is not None and not present.gives_way_to(self.owner):
            raise self._refusal(present)
        path = self.folder / f".owner.{number + 1}"
        if not _create_whole(path, json.dumps(asdict(self.owner))):
            raise self._refusal(read_owner(self.folder) or self.owner)
        self.path = path
        return self

    def release(self) -> None:
        """Say that the folder is free. The file stays: its number must never be used again."""
        if self.path is not None and self.path.exists():
            owner = {**asdict(self.owner), "released": True}
            with contextlib.suppress(RunFailed):  # a full disk: the folder is free when this process ends
                replace_file(self.path, json.dumps(owner).encode())
        self.path = None

    def _refusal(self, owner: Owner) -> InputError:
        who = f"process {owner.pid} on {owner.host}" + (
            f" (SLURM job {owner.slurm_job_id})" if owner.slurm_job_id else ""
        )
        if owner.alive() is None:
            return InUse(f"{self.folder}: in use by {who}; if that is gone, remove {self.folder}/.owner.*")
        return InUse(f"{self.folder}: in use by {who}; wait for it, or choose another run folder")

    def __enter__(self) -> "FolderLock":
        return self if self.path is not None else self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _create_whole(path: Path, text: str) -> bool:
    """Create the file with its content in one step; False when the name was taken."""
    try:
        handle, aside = tempfile.mkstemp(prefix=".owner-", suffix=".aside", dir=path.parent)
    except OSError as error:
        raise write_failed(path, error) from error
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        try:
            os.link(aside, path)
        except FileExistsError:
            # NFS may repeat a request that had succeeded: then the name is already ours
            return path.exists() and os.path.samefile(aside, path)
        except OSError:  # a file system without hard links
            return _create_exclusive(path, text)
        return True
    except OSError as error:
        raise write_failed(path, error) from error
    finally:
        os.unlink(aside)


def _create_exclusive(path: Path, text: str) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return True
