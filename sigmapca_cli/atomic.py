"""Files that appear whole or not at all: written beside their place, forced to disk, renamed over it."""

import contextlib
import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sigmapca_cli.errors import RunFailed

FULL = (errno.ENOSPC, errno.EDQUOT)
ASIDE = ".aside"  # the end of the names of unfinished files, which a kill leaves behind
ABANDONED_AFTER = 60  # seconds
# By absolute folder: what raises an error once this process no longer owns the folder (`runs.lock`).
FENCES: dict[str, Callable[[], None]] = {}


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; some network file systems do not offer it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def write_failed(path: Path, error: OSError) -> RunFailed:
    """Return the error for a file that could not be written, in words."""
    if error.errno in FULL:
        return RunFailed(f"{path}: no space left (disk or quota full); free some and run again to resume")
    return RunFailed(f"{path}: cannot be written ({error.strerror or ' '.join(str(error).split())})")


def replace_file(path: Path, *content: bytes | memoryview) -> None:
    """Replace the file at `path` by `content`, of one piece or of several that follow each other.

    Readers see the old file or the new one, never half; a link at `path` is replaced, not followed. Raises RunFailed
    (full disk, no permission) in one line, with the old file untouched and nothing left aside.
    """
    with replacing(path) as aside, open(aside, "wb") as file:
        file.writelines(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of an empty new file; when the block ends without an error, it takes the place of `path`.

    An OSError of the block becomes RunFailed in one line that names `path`, and nothing is left aside. What an
    earlier process left that was killed is removed.
    """
    aside, handle = None, -1
    try:
        remove_abandoned(path)
        handle, name = tempfile.mkstemp(prefix=_prefix(path.name), suffix=ASIDE, dir=path.parent)
        aside = Path(name)
        _lock(handle)
        yield aside
        os.fsync(handle)
        os.fchmod(handle, 0o666 & ~_umask())
        check_fence(path.parent)
        os.replace(aside, path)
    except BaseException as error:
        if aside is not None:
            aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            check_fence(path.parent)  # it may have removed what was aside
            raise write_failed(path, error) from error
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    sync_folder(path.parent)


def move_whole(path: Path, target: Path) -> None:
    """Force a finished file to disk and move it onto `target`: readers see all or nothing. Raises OSError."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(path, target)
    sync_folder(target.parent)


def check_fence(folder: Path) -> None:
    """Raise what `FENCES` says of a folder: this process has lost it to another one."""
    if FENCES and (fence := FENCES.get(os.path.abspath(folder))) is not None:
        fence()


def _prefix(name: str) -> str:
    return f".{name[:200]}."


def _asides(folder: Path, name: str) -> list[Path]:
    with os.scandir(folder) as entries:
        found = [e.name for e in entries if e.name.startswith(_prefix(name)) and e.name.endswith(ASIDE)]
    return [folder / aside for aside in found]


def _lock(handle: int) -> bool:
    """Lock an open file until it is closed or the process ends; False where somebody else holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nothing is known
        return False
    return True


def remove_asides(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed writer of these files left aside; only for the folder's owner."""
    for name in names:
        for aside in _asides(folder, name):
            aside.unlink(missing_ok=True)


def remove_abandoned(path: Path) -> None:
    """Remove what killed writers of `path` left aside: old files that no process has locked."""
    for aside in _asides(path.parent, path.name):
        with contextlib.suppress(OSError):
            handle = os.open(aside, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                # A young one may belong to a process that is about to lock it.
                if time.time() - os.fstat(handle).st_mtime > ABANDONED_AFTER and _lock(handle):
                    aside.unlink()
            finally:
                os.close(handle)


_UMASK: list[int] = []


def _umask() -> int:
    """Return the process's umask, read once: mkstemp makes private files, but runs are shared within a group."""
    if not _UMASK:
        mask = os.umask(0o077)
        os.umask(mask)
        _UMASK.append(mask)
    return _UMASK[0]
