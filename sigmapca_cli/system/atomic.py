"""Files that appear whole or not at all: written beside their place, forced to disk, renamed over it."""

import contextlib
import errno
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sigmapca_cli.system.errors import RunFailed
from sigmapca_cli.system.processes import boot_id, pid_space, process_start

FULL = (errno.ENOSPC, errno.EDQUOT)
ASIDE = ".aside"  # the end of the names of unfinished files, which a kill leaves behind
ABANDONED_AFTER = 24 * 3600  # seconds since an unfinished file of a writer not seen from here was written to
# By absolute folder: what raises an error once this process no longer owns the folder (`storage.lock`).
FENCES: dict[str, Callable[[], None]] = {}


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
    try:
        remove_abandoned(path)
        with _aside_of(path) as aside:
            yield aside
            check_fence(path.parent)
            move_whole(aside, path)
    except BrokenPipeError:
        raise
    except OSError as error:
        check_fence(path.parent)  # a new owner may have removed what was aside
        raise write_failed(path, error) from error


def create_file(path: Path, content: bytes) -> bool:
    """Create a file with its content in one step; return False when the name was taken. Raises OSError."""
    with _aside_of(path) as aside:
        aside.write_bytes(content)
        _sync(aside)
        try:
            os.link(aside, path)
        except FileExistsError:
            # NFS may repeat a request that had succeeded: then the name is already ours.
            return path.exists() and os.path.samefile(aside, path)
        except OSError:  # a file system without hard links
            with contextlib.suppress(FileExistsError), open(path, "xb") as file:
                file.write(content)
                return True
            return False
    return True


def move_whole(path: Path, target: Path) -> None:
    """Force a finished file to disk and move it onto `target`: readers see all or nothing. Raises OSError."""
    _sync(path)
    os.replace(path, target)
    with contextlib.suppress(OSError):  # some network file systems do not offer it
        _sync(target.parent)  # the rename survives a power cut


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_fence(folder: Path) -> None:
    """Raise what `FENCES` says of a folder: this process has lost it to another one."""
    if FENCES and (fence := FENCES.get(os.path.abspath(folder))) is not None:
        fence()


@contextlib.contextmanager
def _aside_of(path: Path) -> Iterator[Path]:
    """Yield an empty new file beside `path`, with the permissions of the umask; at the end remove what is left."""
    writer = f"{_place()}-{os.getpid()}-{process_start(os.getpid())}"
    aside = path.with_name(f".{path.name[:200]}.{writer}-{secrets.token_hex(4)}{ASIDE}")
    aside.touch(exist_ok=False)
    try:
        yield aside
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


def _place() -> str:
    """Return where the number of a process means the same as here: a start of a machine, and a namespace."""
    return hashlib.sha256(f"{boot_id()} {pid_space()}".encode()).hexdigest()[:8]


def is_aside(name: str, of: str = "") -> bool:
    """Return whether a file's name is that of an unfinished file, of one with the name `of` where that is given."""
    return name.startswith(f".{of[:200]}." if of else ".") and name.endswith(ASIDE)


def remove_asides(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed writer of these files left aside; only for the folder's owner."""
    names = list(names)
    for found in os.listdir(folder):
        if any(is_aside(found, name) for name in names):
            (folder / found).unlink(missing_ok=True)


def remove_abandoned(path: Path) -> None:
    """Remove what killed writers of `path` left aside; of a writer that is not seen from here, what has become old."""
    for found in os.listdir(path.parent):
        if is_aside(found, path.name):
            with contextlib.suppress(OSError):
                if _is_abandoned(path.parent / found):
                    (path.parent / found).unlink()


def _is_abandoned(aside: Path) -> bool:
    """Return whether the writer of an unfinished file has ended. Raise OSError if the file has gone."""
    place, *process = aside.name.removesuffix(ASIDE).rpartition(".")[2].split("-")
    if place == _place() and len(process) == 3 and process[0].isdigit():
        return process_start(int(process[0])) != process[1]
    return time.time() - aside.lstat().st_mtime > ABANDONED_AFTER
