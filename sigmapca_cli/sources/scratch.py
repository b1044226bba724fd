"""Large arrays on disk: scratch files that vanish with the process, and mapped pages handed back in time."""

import mmap
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import RunFailed

# A process is charged for mapped pages that it touched: hand them back after this many bytes.
RELEASE_AFTER = 64 << 20
# A page fault maps its neighbourhood too.
READ_AROUND = 64 << 10


def scratch_array(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """Zeros in a file without a name in $TMPDIR; the disk space is free again when the process ends."""
    try:
        file = tempfile.TemporaryFile(prefix="sigmapca-")  # noqa: SIM115 (it lives as long as the map)
        return np.memmap(file, dtype, "w+", shape=shape)
    except OSError as error:
        size = int(np.prod(shape)) * dtype.itemsize / 1e9
        raise RunFailed(
            f"no room for {size:.1f} GB of scratch data in {tempfile.gettempdir()} ({error.strerror}): set TMPDIR"
        ) from None


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
