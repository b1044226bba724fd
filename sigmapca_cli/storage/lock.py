"""One process owns a run folder.

Owners are numbered files `.owner.1`, `.owner.2`, … that are never removed: the highest number is the
present owner. A file appears complete and at most once (a hard link of a finished file, which fails when the
name is taken), and the next number is only created after the present owner was seen to be released or dead,
or has given no sign of life for the time of its lease (`lease`). So of any number of processes that race for a folder
exactly one wins. It needs no operation that network file systems lack: a takeover by exchanging or renaming a lock
does, or has two winners in some races.

The number is a fence as well. A process that was stopped for longer than its lease may wake up and go on writing, and
a folder may be replaced by another one of its name. So every file of an owned folder is written aside; then the owner
looks whether its own mark is there and the highest; then it renames. Who takes over creates the next number first and
removes all unfinished files next: a rename of the former owner comes before that, or finds its file gone, or is not
tried.
"""

import contextlib
import os
import re
from dataclasses import replace
from pathlib import Path

from sigmapca_cli.storage.lease import Beat, Owner, beat_file, is_gone, looks_gone, myself, owner_from
from sigmapca_cli.system.atomic import (
    FENCES,
    create_file,
    is_aside,
    remove_abandoned,
    replace_file,
    write_failed,
)
from sigmapca_cli.system.errors import InputError, RunFailed, Stopped
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT, read_bytes


class InUse(Stopped):
    """Another process owns the run folder or has taken it over (exit status 75), or the folder is gone (1)."""


OWNER = ".owner"
NAME = re.compile(rf"{re.escape(OWNER)}\.(\d+)$")


def owner_file(folder: Path, number: int) -> Path:
    """Return the mark of owner `number`."""
    return folder / f"{OWNER}.{number}"


def owner_number(folder: Path) -> int:
    """Return the highest owner number in the folder, 0 when it never had an owner."""
    matches = (NAME.match(name) for name in os.listdir(folder))
    return max((int(match.group(1)) for match in matches if match), default=0)


def read_owner(folder: str | os.PathLike[str]) -> Owner | None:
    """Return the present or last owner of a run folder, None when it never had one."""
    number = owner_number(Path(folder))
    return _owner_at(owner_file(Path(folder), number)) if number else None


def _owner_at(path: Path) -> Owner:
    try:
        return owner_from(read_bytes(path, NOTE_LIMIT))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
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

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.number = 0
        self.owner = myself()
        self.beat: Beat | None = None

    @property
    def key(self) -> str:
        """The folder under the name by which `FENCES` and `_reserved` know it."""
        return os.path.abspath(self.folder)

    def acquire(self) -> "FolderLock":
        """Own the folder from now on."""
        if self._had_reserved():
            return self
        number = owner_number(self.folder)
        present = _owner_at(owner_file(self.folder, number)) if number else None
        if present is not None and not self._may_follow(present, number):
            raise self._refusal(present)
        try:
            created = create_file(owner_file(self.folder, number + 1), self.owner.to_json().encode())
        except OSError as error:
            raise write_failed(owner_file(self.folder, number + 1), error) from error
        if not created:
            raise self._refusal(read_owner(self.folder) or self.owner)
        self.number = number + 1
        self.beat = Beat(beat_file(self.folder, self.number), self.owner.lease)
        remove_abandoned(self.folder / OWNER)
        if present is not None and not present.released:
            self._fence_off()
        FENCES[self.key] = self.check
        return self

    def reserve(self) -> None:
        """Keep what was acquired for the next FolderLock of this process and this folder."""
        _reserved[self.key] = self

    def _had_reserved(self) -> bool:
        """Take what this process has reserved, if the folder is still the same."""
        earlier = _reserved.pop(self.key, None)
        if earlier is None or earlier.owner.pid != os.getpid():
            return False
        try:
            earlier.check()
        except InUse:
            earlier.release()
            return False
        self.number, self.owner, self.beat = earlier.number, earlier.owner, earlier.beat
        FENCES[self.key] = self.check
        return True

    def _may_follow(self, present: Owner, number: int) -> bool:
        alive = present.alive()
        if alive is not None:
            return not alive
        if present.restarted_as(self.owner):
            return True
        return present.lease > 0 and is_gone(self.folder, number, present)

    def _fence_off(self) -> None:
        """Remove what the former owner has not finished, so that it cannot finish it any more."""
        for name in os.listdir(self.folder):
            # Not those of owners: others who want the folder make them at this moment, and their number is taken.
            if is_aside(name) and not is_aside(name, OWNER):
                (self.folder / name).unlink(missing_ok=True)
        beat_file(self.folder, self.number - 1).unlink(missing_ok=True)

    def check(self) -> None:
        """Raise InUse if another process has taken the folder over since, or if this is not the folder any more."""
        try:
            latest = owner_number(self.folder)
            ours = latest >= self.number and _owner_at(owner_file(self.folder, self.number)).token
        except (OSError, InputError):
            latest, ours = 0, ""
        if ours != self.owner.token:
            raise InUse(
                f"{self.folder}: removed or replaced while its run was going on; nothing was written since: "
                "run again with another run folder",
                exit_status=1,
            )
        if latest > self.number:
            raise InUse(
                f"{self.folder}: taken over by {read_owner(self.folder)} while this process gave no sign of life; "
                "nothing was written since"
            )

    def release(self) -> None:
        """Say that the folder is free. The file stays: its number must never be used again."""
        if self.beat is None or self.owner.pid != os.getpid():  # a forked child owns nothing
            return
        FENCES.pop(self.key, None)
        beat, self.beat = self.beat, None
        beat.stop()
        # A full disk, a lost permission: the folder is free when this process ends.
        with contextlib.suppress(RunFailed, InUse, OSError):
            mark = owner_file(self.folder, self.number)
            if _owner_at(mark).token == self.owner.token:
                replace_file(mark, replace(self.owner, released=True).to_json().encode())
                beat.path.unlink(missing_ok=True)

    def _refusal(self, owner: Owner) -> Stopped:
        if owner.alive() is None and not owner.lease:
            return InUse(f"{self.folder}: in use by {owner}; if that is gone, remove {self.folder}/{OWNER}.*")
        return InUse(f"{self.folder}: in use by {owner}; wait for it, or choose another run folder")

    def __enter__(self) -> "FolderLock":
        return self if self.beat is not None else self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_reserved: dict[str, FolderLock] = {}
