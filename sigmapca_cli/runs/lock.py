"""One process owns a run folder.

Owners are numbered files `.owner.1`, `.owner.2`, … that are never removed: the highest number is the
present owner. A file appears complete and at most once (a hard link of a finished file, which fails when the
name is taken), and the next number is only created after the present owner was seen to be released or dead,
or has given no sign of life for the time of its lease (`lease`). So of any number of processes that race for a folder
exactly one wins. Taking over by renaming or deleting a lock had two winners in some races.

The number is a fence as well. A process that was stopped for longer than its lease may wake up and go on writing. So
every file of an owned folder is written aside; then the owner looks whether its number is still the highest; then it
renames. Who takes over creates the next number first and removes all unfinished files next: a rename of the former
owner comes before that, or finds its file gone, or is not tried.
"""

import contextlib
import json
import os
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from sigmapca_cli.atomic import ABANDONED_AFTER, ASIDE, FENCES, replace_file, write_failed
from sigmapca_cli.errors import InputError, RunFailed, Stopped
from sigmapca_cli.runs.lease import beat_file, heart, is_gone, looks_gone
from sigmapca_cli.runs.owner import Owner, myself, owner_from
from sigmapca_cli.untrusted_files import NOTE_LIMIT, read_bytes


class InUse(Stopped):
    """Another process owns the run folder, or has taken it over: exit status 75, try again later."""


NAME = re.compile(r"\.owner\.(\d+)$")
UNFINISHED = ".owner-"


def owner_number(folder: Path) -> int:
    """Return the highest owner number in the folder, 0 when it never had an owner."""
    matches = (NAME.match(entry.name) for entry in os.scandir(folder))
    return max((int(match.group(1)) for match in matches if match), default=0)


def read_owner(folder: str | os.PathLike[str]) -> Owner | None:
    """Return the present or last owner of a run folder, None when it never had one."""
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
    """Return whether a process may be at work in the folder, without waiting for the end of a lease.

    That is certain for a process that can be seen from here. For another one its last sign of life decides.
    """
    owner = read_owner(folder)
    if owner is None or owner.alive() is False:
        return False
    if owner.alive() or not owner.lease:
        return True
    return not looks_gone(Path(folder), owner_number(Path(folder)), owner)


class FolderLock:
    """Holds a run folder from `acquire` to `release`, or as a context manager; it can be released twice.

    Raises InUse in one line when somebody else owns the folder. Where only the owner's lease can tell whether it
    lives, `acquire` waits for that lease to run out or be renewed.
    """

    def __init__(self, folder: str | os.PathLike[str], claim: bool = False) -> None:
        self.folder = Path(folder)
        self.path: Path | None = None
        self.number = 0
        self.owner = myself(claim)

    def acquire(self) -> "FolderLock":
        """Own the folder from now on."""
        number = owner_number(self.folder)
        present = read_owner(self.folder) if number else None
        if present is not None:
            gone = present.gives_way_to(self.owner)
            if not (is_gone(self.folder, number, present) if gone is None else gone):
                raise self._refusal(present)
        self.number = number + 1
        path = self.folder / f".owner.{self.number}"
        if not _create_whole(path, self.owner.to_json()):
            raise self._refusal(read_owner(self.folder) or self.owner)
        self.path = path
        if self.owner.claim:
            return self  # for a moment: the lease is long enough without a sign of life
        heart.start(beat_file(self.folder, self.number), self.owner.lease)
        _remove_abandoned(self.folder)
        if present is not None and not present.released and not present.claim:
            self._fence_off()
        FENCES[os.path.abspath(self.folder)] = self.check
        return self

    def _fence_off(self) -> None:
        """Remove what the former owner has not finished, so that it cannot finish it any more."""
        for entry in os.scandir(self.folder):
            # Not those of owners: others who want the folder make them at this moment, and their number is taken.
            if (
                entry.name.startswith(".")
                and entry.name.endswith(ASIDE)
                and not entry.name.startswith(UNFINISHED)
            ):
                Path(entry.path).unlink(missing_ok=True)
        beat_file(self.folder, self.number - 1).unlink(missing_ok=True)

    def check(self) -> None:
        """Raise InUse if another process has taken the folder over since."""
        if self.path is not None and owner_number(self.folder) > self.number:
            raise InUse(
                f"{self.folder}: taken over by {read_owner(self.folder)} while this process gave no sign of life; "
                "nothing was written since"
            )

    def release(self) -> None:
        """Say that the folder is free. The file stays: its number must never be used again."""
        if self.path is not None:
            FENCES.pop(os.path.abspath(self.folder), None)
            if self.path.exists():
                # A full disk, a lost permission: the folder is free when this process ends.
                with contextlib.suppress(RunFailed):
                    replace_file(self.path, replace(self.owner, released=True).to_json().encode())
            heart.stop(beat_file(self.folder, self.number))
        self.path = None

    def _refusal(self, owner: Owner) -> Stopped:
        if owner.alive() is None and not owner.lease:
            return InUse(f"{self.folder}: in use by {owner}; if that is gone, remove {self.folder}/.owner.*")
        return InUse(f"{self.folder}: in use by {owner}; wait for it, or choose another run folder")

    def __enter__(self) -> "FolderLock":
        return self if self.path is not None else self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished owner files whose process was killed; a young one may belong to a process that is alive."""
    for entry in os.scandir(folder):
        if entry.name.startswith(UNFINISHED) and entry.name.endswith(ASIDE):
            with contextlib.suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_AFTER:
                    os.unlink(entry.path)


def _create_whole(path: Path, text: str) -> bool:
    """Create the file with its content in one step; False when the name was taken."""
    try:
        handle, aside = tempfile.mkstemp(prefix=UNFINISHED, suffix=ASIDE, dir=path.parent)
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
        Path(aside).unlink(missing_ok=True)


def _create_exclusive(path: Path, text: str) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return True
