"""Files beside run.h5 that are appended to or rewritten: never through a link, never into a pipe."""

import contextlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.system.atomic import check_fence, replace_file
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import open_regular, read_bytes, refuse_irregular, refuse_link

HYDRA_FOLDER = ".hydra"


def open_at_end(path: Path) -> int:
    """Open a plain file for appending, make it where it is missing, and return its descriptor.

    A file with several names (hard links) is replaced by a copy first: the other name may be another run's, or a
    file outside of the folder. Raises InputError for a link or a special file.
    """
    refuse_irregular(path)
    if path.exists() and path.stat().st_nlink > 1:
        replace_file(path, read_bytes(path))
    return open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def append(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Append to a plain file, all of `content` or nothing; `durable` forces it to disk. Raises as os.write."""
    check_fence(path.parent)  # before a file is made there
    handle = open_at_end(path)
    try:
        check_fence(path.parent)  # a new owner has replaced the file that is open now
        size = os.lseek(handle, 0, os.SEEK_END)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(handle, left) :]
            if durable:
                os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)  # a full disk may have taken half a line
            raise
    finally:
        os.close(handle)


def forget_failure(folder: Path) -> None:
    """Remove the note of the last failure from a job's folder."""
    refuse_irregular(folder / fmt.ERROR_FILE)
    (folder / fmt.ERROR_FILE).unlink(missing_ok=True)


class LogFile(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """A handler that appends records to train.log of a run folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / fmt.LOG_FILE
        if path.exists():  # a file of its own, which a former owner that wakes up does not write to
            replace_file(path, read_bytes(path))
        self.file = os.fdopen(open_at_end(path), "a", encoding="utf-8")
        super().__init__(self.file)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, with escapes for what would steer the terminal of a reader."""
        return printable(super().format(record), keep="\n\t")

    def handleError(self, record: logging.LogRecord) -> None:
        """Lose a line that a full disk does not take: the run's own files say in one line what is wrong."""

    def close(self) -> None:
        """Close the file as well."""
        with contextlib.suppress(OSError):
            super().close()
        with contextlib.suppress(OSError):
            self.file.close()


def save_hydra(folder: Path, yaml: str, overrides: Iterable[str]) -> None:
    """Write `.hydra/config.yaml` and `.hydra/overrides.yaml` as Hydra itself would have written them."""
    hidden = folder / HYDRA_FOLDER
    refuse_link(hidden)
    hidden.mkdir(exist_ok=True)
    replace_file(hidden / "config.yaml", yaml.encode())
    replace_file(hidden / "overrides.yaml", "".join(f"- {line}\n" for line in overrides).encode())
