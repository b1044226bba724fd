"""Files are believed only so far: what a library makes of damaged bytes, and what a header claims to need."""

import errno
import math
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError, SigmapcaError

# An HDF5 data set may claim more than it stores, by so much at most: its compressors come nowhere near.
SPARSE = 5000
# A lock that cannot be had on any file there: NFS without its lock service, Lustre mounted without flock, FUSE.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def is_finite(value: float) -> bool:
    """Neither NaN nor infinite, nor a whole number that no float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def shown(value: float) -> str:
    """A number in a message: 300 digits help nobody."""
    text = str(value) if isinstance(value, int) else f"{value:g}"
    return text if len(text) <= 24 else f"{text[:20]}…"


def reason(error: BaseException) -> str:
    """What a library said, as one short line."""
    text = " ".join(str(error).split())
    return text[:160] or type(error).__name__


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


def memory_left() -> float:
    """Bytes that this process may still take: of the machine, and of its own limit (ulimit -v)."""
    left = float("inf")
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        left = float(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) * 1024
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            left = min(left, limit - pages * resource.getpagesize())
    except (OSError, StopIteration, ValueError):  # not Linux: nothing is known
        pass
    return left


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

    def link(name: str, found: Any) -> None:
        if isinstance(found, h5py.ExternalLink):
            raise ValueError(f"{name} is a link into another file, {found.filename}; copy it into this one")

    def item(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
            raise ValueError(f"{name} keeps its values in another file; copy them into this one")

    file.visititems_links(link)
    file.visititems(item)
    return file
