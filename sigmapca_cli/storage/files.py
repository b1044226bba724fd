"""HDF5 files that are only ever replaced whole: built in memory, written aside, forced to disk, renamed.

An HDF5 file opened for writing is unreadable after a kill at the wrong moment; a file that is replaced is
not. Building it in memory keeps a full disk away from the HDF5 library, which cannot always close a file
it failed to write.

After the HDF5 file come, in text, a summary of it and the SHA-256 of everything before. HDF5 ignores what
follows its own end, and drops it when another program changes the file: so every HDF5 program reads and edits
these files; ours notices a flipped bit before it reaches the HDF5 library, which can turn one into zeros
without a word; and a listing of thousands of runs need not open each with HDF5.
"""

import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError, SigmapcaError
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import in_the_way, read_bytes, reader, refuse_irregular
from sigmapca_cli.system.untrusted_hdf5 import within_budget

NOTE = b"\nsummary:"
MARK = b"\nsha256:"
LONGEST_NOTE = 65536
TRAILER = len(MARK) + 64
OPEN_FLAGS = slice(20, 24)  # where version 0 of HDF5's superblock notes an open writer


def file_image(fill: Callable[[h5py.File], str | None]) -> list[bytes]:
    """The pieces of an HDF5 file that `fill` writes, sealed with the note that it returns."""
    # A name of its own for each thread: HDF5 does not open one name twice, though it is no file.
    with h5py.File(f"memory {threading.get_ident()}", "w", driver="core", backing_store=False) as file:
        note = fill(file)
        file.flush()
        return sealed(file.id.get_file_image(), note or "")


def edit(path: Path, change: Callable[[h5py.File], str]) -> None:
    """Apply `change`, which returns the new note, to a copy of the file and put the copy in its place."""
    copy = io.BytesIO(read_whole(path)[0])
    with reading(path):  # says in words what is wrong with the file
        pass
    with h5py.File(copy, "r+") as file:
        note = change(file)
    replace_file(path, *sealed(copy.getvalue(), note))


def _open(path: Path) -> h5py.File:
    """Open without any lock: files are replaced, never written in place, so no reader needs one.

    Locks are what fails on network file systems. HDF5 refuses a second open in this process whose lock
    setting differs from the first (a notebook's own h5py.File, say): then read through a Python file, which
    HDF5 never locks.
    """
    refuse_irregular(path)
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if "locking flag" in str(error) or "lock file" in str(error):
            return h5py.File(reader(path), "r")
        raise


def unreadable(path: Path, error: BaseException) -> InputError:
    """What a failed open or read means, in one line that names the file."""
    text = printable(" ".join(str(error).split()))
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file")
    if isinstance(error, PermissionError) or "errno = 13" in text:
        return InputError(f"{path}: permission denied")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a folder, not a file")
    if held := in_the_way(error):
        return InputError(f"{path}: cannot be opened, {held}")
    if "truncated" in text:
        return InputError(f"{path}: truncated HDF5 file (an interrupted copy?); copy it again")
    if "signature not found" in text:
        return InputError(f"{path}: not an HDF5 file")
    return InputError(f"{path}: damaged, or not readable as HDF5 ({text[:160]})")


def sealed(image: bytes, note: str = "") -> list[bytes]:
    """Return the file's bytes with a note (one line of text) and the checksum of both behind them.

    They are pieces that follow each other: a large file is not copied to be one.
    """
    parts = [image, NOTE, note.encode()] if note else [image]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return [*parts, MARK, digest.hexdigest().encode()]


def read_note(path: Path) -> str | None:
    """The note behind the HDF5 part without reading that part; None where there is none, or a long one."""
    try:
        with reader(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_NOTE))
            end = file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    start, stop = end.rfind(NOTE), len(end) - TRAILER
    if start < 0 or end[stop : stop + len(MARK)] != MARK:
        return None
    return end[start + len(NOTE) : stop].decode("utf-8", "replace")


def unsealed(path: Path, content: bytes) -> tuple[bytes, bool]:
    """(the HDF5 part, whether a checksum vouches for it); InputError where the checksum does not hold."""
    image, trailer = content[:-TRAILER], content[-TRAILER:]
    if not trailer.startswith(MARK):
        return content, False
    if hashlib.sha256(image).hexdigest().encode() == trailer[len(MARK) :]:
        return image, True
    if image[OPEN_FLAGS] != b"\0" * 4:
        return image, False  # another program has it open for writing, and will drop the checksum on closing
    raise InputError(f"{path}: damaged file (its checksum does not hold); restore a copy, or run again")


def read_whole(path: Path) -> tuple[bytes, bool]:
    """As `unsealed`, of a file on disk."""
    try:
        return unsealed(path, read_bytes(path))
    except OSError as error:
        raise unreadable(path, error) from error


@contextmanager
def surveyed(path: Path) -> Iterator[tuple[h5py.File, dict[str, Any]]]:
    """Open `path` for reading, with all that it holds by name; otherwise as `unsurveyed`."""
    with unsurveyed(path) as file:
        yield file, within_budget(file)


@contextmanager
def unsurveyed(path: Path) -> Iterator[h5py.File]:
    """Open `path` for reading what a caller checks item by item.

    Whatever HDF5 reports inside the block becomes a one-line InputError.
    """
    try:
        with _open(path) as file:
            yield file
    except SigmapcaError:
        raise
    except Exception as error:  # damaged bytes come out of h5py as almost any type
        raise unreadable(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[h5py.File]:
    """Open `path` for reading, as `surveyed` does."""
    with surveyed(path) as (file, _):
        yield file


def put(group: h5py.Group, name: str, value: Any) -> h5py.Dataset:
    """Write `value` at `name`, over what was there."""
    if name in group:
        del group[name]
    return group.create_dataset(name, data=value)
