"""Guards for reading files that may be damaged, or made by a stranger to do harm.

A name in a run folder may be a link, a FIFO or a device: `open_regular` opens plain files only. A header may claim
any size: `need_memory` compares it with what is there. A library may raise anything: `damaged` makes one
line of it.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from sigmapca_cli.system.errors import InputError, SigmapcaError
from sigmapca_cli.system.limits import memory_left
from sigmapca_cli.system.text import reason

# All data sets of a run file or checkpoint together: this program compresses none, `h5repack` may have compressed some.
TOTAL_SPARSE = 50
ALWAYS_ALLOWED = 64 << 20  # bytes that a file of any size may unfold to
NOTE_LIMIT = 1 << 20  # bytes of a small file: an owner, a note of a failure, a list of job ids
# A lock that cannot be had on any file there: NFS without its lock service, Lustre mounted without flock, FUSE.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

IRREGULAR_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def refuse_irregular(path: str | os.PathLike[str]) -> None:
    """Raise InputError if something other than a plain file stands at `path`; nothing there is allowed."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    for is_kind, words in IRREGULAR_KINDS:
        if is_kind(mode):
            raise _irregular(path, words)


def refuse_special(path: str | os.PathLike[str], where: str) -> None:
    """Raise InputError if `path`, or what it links to, can be read once only: a pipe, a socket, a device.

    Nothing there is allowed. where: how the message names it.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        words = next(words for is_kind, words in IRREGULAR_KINDS if is_kind(mode))
        raise InputError(f"{where}: is {words}, and rows are read more than once: write them into a file")


def refuse_link(folder: str | os.PathLike[str]) -> None:
    """Raise InputError if something other than a folder stands at `folder`, a link to one included."""
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return
    if not stat.S_ISDIR(mode):
        words = next((words for is_kind, words in IRREGULAR_KINDS if is_kind(mode)), "a file")
        raise InputError(f"{folder}: is {words}, where a folder of this program is expected; remove it")


def _irregular(path: str | os.PathLike[str], words: str) -> InputError:
    return InputError(f"{path}: is {words}, not a plain file: it is not followed; put the file itself there")


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a plain file and return its descriptor; a link is not followed, and a FIFO or a device not opened.

    Raises InputError for those, OSError as os.open does.
    """
    refuse_irregular(path)
    extra = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | extra, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link since the look above
            raise _irregular(path, "a symbolic link") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _irregular(path, "a special file")
    return descriptor


def reader(path: str | os.PathLike[str]) -> BinaryIO:
    """Return an open binary file as `open_regular` allows it."""
    return os.fdopen(open_regular(path), "rb")


def read_bytes(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """Return the content of a plain file. Raises InputError for one of more than `limit` bytes, or of hardly any.

    A file that is one large hole takes no place on the disk, and its zeros all of the memory.
    """
    with reader(path) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is None and size > ALWAYS_ALLOWED and size > TOTAL_SPARSE * there(file.fileno(), size):
            raise InputError(f"{path}: claims {size / 1e9:.1f} GB, and stores next to nothing; remove it")
        content = file.read() if limit is None else file.read(limit + 1)
    if limit is not None and len(content) > limit:
        raise InputError(f"{path}: longer than {limit} bytes: not a file of this program; remove it")
    return content


def in_the_way(error: BaseException) -> str | None:
    """What keeps HDF5 from opening a file that is not damaged, and what to do; None for any other error.

    HDF5 asks for a lock where the environment orders it to (HDF5_USE_FILE_LOCKING), whatever the program wants, and
    notes an open writer in files of its newer format.
    """
    text = " ".join(str(error).split())
    if "already open for write" in text:
        return "another program has it open for writing: close that, or after its crash run `h5clear -s` on the file"
    if "locking flag values don't match" in text:
        return "it is open in this process with another setting of file locking: close it first"
    if "lock file" not in text:
        return None
    found = re.search(r"errno = (\d+)", text)
    if found and int(found[1]) in NO_LOCKS:
        return "its file system offers no file locks: set HDF5_USE_FILE_LOCKING=FALSE"
    return "another program has it open for writing: close that, or set HDF5_USE_FILE_LOCKING=FALSE"


@contextmanager
def damaged(where: object, advice: str = "write it again") -> Iterator[None]:
    """Around a library's reader: whatever it raises means that the file is damaged, and is one InputError.

    Readers meet damaged bytes with almost any type of exception, from KeyError to tokenize.TokenError.
    """
    try:
        yield
    except SigmapcaError:
        raise
    except MemoryError:
        raise InputError(f"{where} claims more than fits in memory: {advice}, or take a part of it") from None
    except Exception as error:
        if held := in_the_way(error):
            raise InputError(f"{where} cannot be opened, {held}") from None
        raise InputError(f"{where} is truncated or damaged ({reason(error)}): {advice}") from None


def need_memory(size: float, where: object, advice: str) -> None:
    """Refuse what would not fit, before it is read: a small archive can claim any size."""
    left = memory_left()
    if size > left:
        raise InputError(
            f"{where} needs {size / 1e9:.1f} GB of memory, {max(left, 0) / 1e9:.1f} GB are free: {advice}"
        )


def there(descriptor: int, size: int) -> int:
    """Return the bytes of a file without its holes: all, where the file system knows of none."""
    try:
        return sum(_extents(descriptor, size))
    except (OSError, AttributeError):  # another system
        return size
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def _extents(descriptor: int, size: int) -> Iterator[int]:
    """Yield the lengths of the stretches of a file that hold data; after many the rest counts as one."""
    place = 0
    for _ in range(1000):
        try:
            place = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as problem:
            if problem.errno == errno.ENXIO:  # nothing but a hole from here on
                return
            raise
        end = os.lseek(descriptor, place, os.SEEK_HOLE)
        yield end - place
        place = end
        if place >= size:
            return
    yield size - place
