"""Guards for reading files that may be damaged, or made by a stranger to do harm.

A name in a run folder may be a link, a FIFO or a device: `open_regular` opens plain files only. A header may claim
any size: `need_memory` and `stored` compare it with what is there. A library may raise anything: `damaged` makes one
line of it.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from sigmapca_cli.system.errors import InputError, SigmapcaError
from sigmapca_cli.system.limits import memory_left
from sigmapca_cli.system.text import reason

# An HDF5 data set may claim more than it stores, by so much at most: its compressors come nowhere near.
SPARSE = 5000
# All data sets of a run file or checkpoint together: this program compresses none, `h5repack` may have compressed some.
TOTAL_SPARSE = 50
DEEPEST = 64  # groups within groups: HDF5 takes minutes for the names of thousands
ALWAYS_ALLOWED = 64 << 20  # bytes that a file of any size may unfold to
NOTE_LIMIT = 1 << 20  # bytes of a small file: an owner, a note of a failure, a list of job ids
# A lock that cannot be had on any file there: NFS without its lock service, Lustre mounted without flock, FUSE.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

KINDS = (
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
    for is_kind, words in KINDS:
        if is_kind(mode):
            raise _irregular(path, words)


def refuse_link(folder: str | os.PathLike[str]) -> None:
    """Raise InputError if something other than a folder stands at `folder`, a link to one included."""
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return
    if not stat.S_ISDIR(mode):
        words = next((words for is_kind, words in KINDS if is_kind(mode)), "a file")
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
        if limit is None and size > ALWAYS_ALLOWED and size > TOTAL_SPARSE * _there(file.fileno(), size):
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


def stored(data: Any) -> Any:
    """An h5py data set, if the file really holds it: one of a few bytes can claim terabytes of zeros.

    Raises ValueError, for the reader around it to put into words.
    """
    size, there = data.size * data.dtype.itemsize, data.id.get_storage_size()
    if size > SPARSE * max(there, 1 << 16):
        raise ValueError(f"{data.name} claims {size / 1e9:.1f} GB and stores {there} bytes")
    return data


def held_bytes(file: Any) -> int:
    """Return the bytes of an open h5py file without the holes in it, which take no place on the disk.

    A file system that knows of no holes says that all of it is there.
    """
    size = int(file.id.get_filesize())
    try:
        with reader(file.filename) as plain:
            return _there(plain.fileno(), size)
    except (OSError, SigmapcaError):  # a file in memory
        return size


def _there(descriptor: int, size: int) -> int:
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


class Budget:
    """Bytes that the data sets of one HDF5 file may unfold to, all together.

    Each data set alone may be within bounds and their sum beyond the memory: 54 KB took 11.8 GB once.
    """

    def __init__(self, file_size: int) -> None:
        self.left = max(ALWAYS_ALLOWED, TOTAL_SPARSE * file_size)

    def take(self, data: Any, size: int) -> None:
        """Count `size` more bytes, of this data set. Raises ValueError when the file has spent its budget."""
        self.left -= size
        if self.left < 0:
            raise ValueError(f"{data.name} claims, together with the others, far more than the file holds")

    def read(self, data: Any) -> Any:
        """Return the values of an h5py data set as NumPy's array, or raise ValueError as `take` and `stored` do."""
        import numpy as np

        if data.shape is None:
            raise ValueError(f"{data.name} has no values")
        stored(data)
        self.take(data, data.size * data.dtype.itemsize)
        need_memory(data.size * data.dtype.itemsize, data.name, "use another copy of the file")
        if data.dtype.kind != "O" or not data.shape:
            return np.asarray(data[()])
        # Strings of any length: many entries can point to one long text.
        found = np.empty(data.shape, object)
        rows = max(1, 256 // max(1, data.size // max(1, data.shape[0])))
        for start in range(0, data.shape[0], rows):
            found[start : start + rows] = block = data[start : start + rows]
            self.take(data, sum(len(text) for text in np.ravel(block) if isinstance(text, bytes | str)))
        return found


def attributes(item: Any) -> dict[str, Any]:
    """Return the attributes of an h5py file or data set by name; ValueError where they unfold to more than a note."""
    left, found = NOTE_LIMIT, {}
    for name in item.attrs:
        left -= item.attrs.get_id(name).get_storage_size()
        if left >= 0:
            found[name] = value = item.attrs[name]
            left -= sum(len(t) for t in getattr(value, "flat", [value]) if isinstance(t, bytes | str))
        if left < 0:
            raise ValueError(f"its attributes hold more than {NOTE_LIMIT} bytes")
    return found


def within_budget(file: Any) -> Any:
    """Return an open h5py file whose data sets together unfold to no more than a `Budget`; ValueError otherwise."""
    import h5py

    budget = Budget(held_bytes(file))

    def count(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            budget.take(item, (item.size or 0) * item.dtype.itemsize)

    file.visititems(count)
    return file


def as_text(value: Any) -> str:
    """A string of an HDF5 file, however it is stored: R, Julia and MATLAB write bytes of fixed length, or arrays."""
    if getattr(value, "shape", None):
        value = value.ravel()[0]
    return value.decode("utf-8", "replace").rstrip("\0") if isinstance(value, bytes) else str(value)


def self_contained(file: Any) -> Any:
    """An open h5py file, if nothing in it leads to another: HDF5 can link to any file, or keep its values there.

    Reading would show what somebody else's file names, and writing would change it. Raises ValueError, as `stored`.
    """
    import h5py

    def link(name: str, found: Any) -> str | None:  # a word ends the visit; HDF5 unwinds badly after an error
        if name.count("/") > DEEPEST:
            return f"its groups are nested more than {DEEPEST} deep"
        if isinstance(found, h5py.ExternalLink):
            return f"{name} is a link into another file, {found.filename}; copy it into this one"
        return None

    def item(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
            raise ValueError(f"{name} keeps its values in another file; copy them into this one")

    if refused := file.visititems_links(link):
        raise ValueError(refused)
    file.visititems(item)
    return file
