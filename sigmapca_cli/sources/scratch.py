"""Large arrays on disk: rows read by position, scratch files that vanish with the process."""

import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import RunFailed

# A process is charged for mapped pages that it touched: hand them back after this many bytes.
RELEASE_AFTER = 64 << 20
# A page fault may map a whole large page (2 MB) of the system's cache.
READ_AROUND = 2 << 20


def _bytes(block: NDArray) -> memoryview:
    """The bytes of a contiguous array, whatever its byte order."""
    return block.reshape(-1).view(np.uint8).data


class RowFile:
    """A matrix (n, p) that lies row by row in a file, read by position.

    Not a memory map: a random row of a map can cost 2 MB of mapped pages, and a process that gathers rows from a
    20 GB map soon counts as using gigabytes. Reading by position keeps nothing, and is quicker as well.
    """

    def __init__(self, descriptor: int, offset: int, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self._offset, self._descriptor = offset, descriptor
        self._row = shape[1] * dtype.itemsize
        self.nbytes = shape[0] * self._row
        weakref.finalize(self, os.close, descriptor)

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def under(cls, data: np.memmap) -> "RowFile":
        """The file under a C-ordered memory map."""
        descriptor = os.open(str(data.filename), os.O_RDONLY)
        return cls(descriptor, data.offset, data.shape, data.dtype)

    @classmethod
    def scratch(cls, shape: tuple[int, int], dtype: np.dtype) -> "RowFile":
        """An empty file without a name in $TMPDIR, to be filled by `write`."""
        with tempfile.TemporaryFile(prefix="sigmapca-") as file:
            return cls(os.dup(file.fileno()), 0, shape, dtype)

    def write(self, start: int, block: NDArray) -> None:
        """Rows from `start` on."""
        view = _bytes(np.ascontiguousarray(block, dtype=self.dtype))
        position = self._offset + start * self._row
        try:
            while view:
                written = os.pwrite(self._descriptor, view, position)
                view, position = view[written:], position + written
        except OSError as error:
            raise no_room(self.nbytes, error) from None

    def _read(self, row: int, target: NDArray) -> None:
        view = _bytes(target)
        position = self._offset + row * self._row
        while view:
            count = os.preadv(self._descriptor, [view], position)
            if count == 0:
                raise RunFailed(
                    "a data file became shorter while it was read: start again with the whole file"
                )
            view, position = view[count:], position + count

    def gather(self, rows: NDArray[np.int64]) -> NDArray:
        """The rows of an index, in its order."""
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        for target, row in zip(out, rows.tolist(), strict=True):
            self._read(row, target)
        return out

    def block(self, start: int, stop: int) -> NDArray:
        """Rows start … stop."""
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        self._read(start, out)
        return out


def no_room(size: float, error: OSError) -> RunFailed:
    where = tempfile.gettempdir()
    return RunFailed(f"no room for {size / 1e9:.1f} GB in {where} ({error.strerror}): set TMPDIR")


def scratch_array(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """Zeros in a file without a name in $TMPDIR; the disk space is free again when the process ends."""
    try:
        file = tempfile.TemporaryFile(prefix="sigmapca-")  # noqa: SIM115 (it lives as long as the map)
        return np.memmap(file, dtype, "w+", shape=shape)
    except OSError as error:
        raise no_room(float(np.prod(shape)) * dtype.itemsize, error) from None


def mapping_under(data: Any) -> mmap.mmap | None:
    """The mmap that a memory map, or a view of one, lies in."""
    while isinstance(data, np.ndarray):
        inner = getattr(data, "_mmap", None)
        if inner is not None:
            return inner
        data = data.base
    return data if isinstance(data, mmap.mmap) else None


class PageLedger:
    """Counts the bytes touched in a mapped array, and gives the pages back now and then; no-op for others.

    The pages stay in the system's cache: only this process stops being charged for them.
    """

    def __init__(self, data: Any) -> None:
        self._map = mapping_under(data)
        self._touched = 0

    def touch(self, rows: int, size: int) -> None:
        """Note that `rows` places, `size` bytes in all, have been read or written."""
        if self._map is None:
            return
        # Threads may lose a count here; the ledger need not be exact.
        self._touched += rows * READ_AROUND + size
        if self._touched > RELEASE_AFTER:
            self._touched = 0
            self._map.madvise(mmap.MADV_DONTNEED)
