"""Large arrays: rows read by position, from files or memory; scratch files that are deleted when the process ends."""

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.errors import RunFailed

# Data up to this size is read into memory once, in a plain layout; larger data stays on disk.
MEMORY_LIMIT = 256 << 20
# Mapped pages count as memory of the process after they are touched: release them after this many bytes.
RELEASE_AFTER = 64 << 20
# A page fault may map a whole large page (2 MB) of the system's cache.
READ_AROUND = 2 << 20
# Rows of an increasing index are read with those between them where these have at most so many bytes for each.
GAP_BYTES = 4 << 10
PICK_BYTES = 1 << 20


def _bytes(block: NDArray) -> memoryview:
    """Return the bytes of a contiguous array, in its own byte order."""
    return block.reshape(-1).view(np.uint8).data


class RowFile:
    """A matrix (n, p) stored row by row in a file, read by position.

    It is no memory map: a random row of a map can cost 2 MB of mapped pages, so a process that gathers rows from a
    20 GB map soon counts as using gigabytes. Reading by position holds no pages, and is faster.
    """

    place = "in a file"

    def __init__(self, descriptor: int, offset: int, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, 2
        self._offset, self._descriptor = offset, descriptor
        self._row = shape[1] * dtype.itemsize
        self.nbytes = shape[0] * self._row
        weakref.finalize(self, os.close, descriptor)

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def under(cls, data: np.memmap) -> "RowFile":
        """Return the file under a C-ordered memory map."""
        descriptor = os.open(str(data.filename), os.O_RDONLY)
        return cls(descriptor, data.offset, data.shape, data.dtype)

    @classmethod
    def scratch(cls, shape: tuple[int, int], dtype: np.dtype) -> "RowFile":
        """Return an empty file without a name in $TMPDIR, to be filled by `write`."""
        with tempfile.TemporaryFile(prefix="sigmapca-") as file:
            return cls(os.dup(file.fileno()), 0, shape, dtype)

    def write(self, start: int, block: NDArray) -> None:
        """Write rows from number `start` on."""
        view = _bytes(np.ascontiguousarray(block, dtype=self.dtype))
        position = self._offset + start * self._row
        try:
            while view:
                written = os.pwrite(self._descriptor, view, position)
                view, position = view[written:], position + written
        except OSError as error:
            raise no_room(self.nbytes, error) from None

    def append(self, block: NDArray) -> None:
        """Write rows below those that are there."""
        self.nbytes += len(block) * self._row
        self.write(len(self), block)
        self.shape = (len(self) + len(block), self.shape[1])

    def fill(self, row: int, column: int, target: NDArray) -> None:
        """Fill a contiguous array with the entries from this row and column on."""
        view = _bytes(target)
        position = self._offset + row * self._row + column * self.dtype.itemsize
        while view:
            count = os.preadv(self._descriptor, [view], position)
            if count == 0:
                raise RunFailed("a data file was truncated while it was read: restore the file and run again")
            view, position = view[count:], position + count

    def gather(self, rows: NDArray[np.int64]) -> NDArray:
        """Return the rows of an index, in its order."""
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        near = (rows[-1] - rows[0]) * self._row < GAP_BYTES * len(rows) if len(rows) > 1 else False
        if near and (np.diff(rows) > 0).all():
            self._pick(rows, out)
            return out
        for target, row in zip(out, rows.tolist(), strict=True):
            self.fill(row, 0, target)
        return out

    def _pick(self, rows: NDArray[np.int64], out: NDArray) -> None:
        """Fill `out` with rows of an increasing index, of which many are near each other: read all rows between them.

        One read of many rows takes less time than many reads of one.
        """
        step = max(1, PICK_BYTES // self._row)
        held = np.empty((step, self.shape[1]), self.dtype)
        first = 0
        while first < len(rows):
            start = int(rows[first])
            last = int(rows.searchsorted(start + step))
            span = int(rows[last - 1]) + 1 - start
            self.fill(start, 0, held[:span])
            out[first:last] = held[rows[first:last] - start]
            first = last

    def blocks(self) -> Iterator[NDArray]:
        """Yield all rows, in blocks of about 1 MB."""
        step = max(1, PICK_BYTES // self._row)
        for start in range(0, len(self), step):
            yield self.block(start, min(start + step, len(self)))

    def block(self, start: int, stop: int) -> NDArray:
        """Return the rows start … stop − 1; not to be written to."""
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        self.fill(start, 0, out)
        return out


class RowsInMemory(RowFile):
    """A large matrix (n, p) in C order that a program holds, read as it would be read from its file.

    So its sums, its samples and its hash are those of the file.
    """

    place = "in memory"

    def __init__(self, data: NDArray) -> None:
        self.shape, self.dtype, self.ndim, self.nbytes = data.shape, data.dtype, 2, data.nbytes
        self._data, self._row = data, data.shape[1] * data.dtype.itemsize

    def fill(self, row: int, column: int, target: NDArray) -> None:
        """Fill a contiguous array with the entries from this row and column on."""
        start = row * self.shape[1] + column
        target[...] = self._data.reshape(-1)[start : start + target.size].reshape(target.shape)

    def gather(self, rows: NDArray[np.int64]) -> NDArray:
        """Return the rows of an index, in its order."""
        return np.asarray(self._data[rows])

    def block(self, start: int, stop: int) -> NDArray:
        """Return the rows start … stop − 1; not to be written to."""
        return np.asarray(self._data[start:stop])


def collected(blocks: Iterable[NDArray], width: int, dtype: Any = np.float64) -> "NDArray | RowFile":
    """Return blocks of rows (m, width), one below the other: in memory up to MEMORY_LIMIT bytes, else in a file.

    Blocks whose number is not known go through a file, so that never two copies are in memory.
    """
    file = RowFile.scratch((0, width), np.dtype(dtype))
    for block in blocks:
        file.append(block)
    return file if file.nbytes > MEMORY_LIMIT else file.block(0, len(file))


class RowSlices:
    """Some rows (m, p) of a file that are read when they are asked for, whole or slices `[:, columns]` of them."""

    def __init__(self, file: RowFile, rows: range) -> None:
        self._file, self._rows = file, rows
        self.shape, self.dtype = (len(rows), file.shape[1]), file.dtype

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: tuple[slice, slice]) -> NDArray:
        """Return these columns of the chosen rows; `[rows, columns]` with slices without a step."""
        rows = self._rows[at[0]]
        start, stop, _ = at[1].indices(self.shape[1])
        out = np.empty((len(rows), stop - start), self.dtype)
        for target, row in zip(out, rows, strict=True):
            self._file.fill(row, start, target)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """Return the whole rows."""
        rows = self._rows
        return np.asarray(self._file.block(rows.start, min(rows.stop, len(self._file)))[:: rows.step], dtype)


def no_room(size: float, error: OSError) -> RunFailed:
    where = tempfile.gettempdir()
    return RunFailed(
        f"no space for {size / 1e9:.1f} GB in {where} ({error.strerror}): set TMPDIR to a folder with more space"
    )


def scratch_array(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """Return zeros in a file without a name in $TMPDIR; the disk space is freed when the process ends."""
    try:
        file = tempfile.TemporaryFile(prefix="sigmapca-")  # noqa: SIM115 (it lives as long as the map)
        return np.memmap(file, dtype, "w+", shape=shape)
    except OSError as error:
        raise no_room(float(np.prod(shape)) * dtype.itemsize, error) from None


def mapping_under(data: Any) -> mmap.mmap | None:
    """Return the mmap under a memory map or a view of one; None for other arrays."""
    while isinstance(data, np.ndarray):
        data = data.base
    return data if isinstance(data, mmap.mmap) else None


class PageLedger:
    """Counts the bytes touched in a mapped array and releases the pages at intervals; does nothing for other arrays.

    The pages stay in the cache of the system, but no longer count as memory of this process.
    """

    def __init__(self, data: Any) -> None:
        self._map = mapping_under(data)
        self._touched = 0

    def touch(self, rows: int, size: int) -> None:
        """Count a read or write of `size` bytes at `rows` places."""
        if self._map is None:
            return
        # A race between threads may lose a count; the ledger need not be exact.
        self._touched += rows * READ_AROUND + size
        if self._touched > RELEASE_AFTER:
            self._touched = 0
            self._map.madvise(mmap.MADV_DONTNEED)
