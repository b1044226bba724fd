"""data=array: a matrix (samples × features) from a file, streamed from disk when it is large."""

import hashlib
import mmap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.array_files import is_hdf5, read_matrix
from sigmapca_cli.sources.base import Index, Source, Standardisation, half_of, need_two_samples
from sigmapca_cli.sources.locate import existing
from sigmapca_cli.sources.statistics import Moments, streamed_moments

# Data up to this size is read into memory once, in a plain layout; larger data stays on disk.
MEMORY_LIMIT = 256 << 20
# A process is charged for mapped pages that it touched: hand them back after this many bytes.
RELEASE_AFTER = 64 << 20
READ_AROUND = 64 << 10
WIDEST_ONE_PASS = 2048


def check_matrix(data: Any, where: str) -> None:
    """Type, dimensions and size, before any value is read."""
    dtype = data.dtype
    if dtype.kind == "c":
        raise InputError(f"{where} is complex ({dtype}): give real numbers, for example its absolute value")
    if dtype.kind == "O":
        raise InputError(f"{where} holds Python objects: save a plain numeric array")
    if dtype.kind not in "biuf":
        raise InputError(f"{where} has type {dtype}, not numbers: convert it to float32")
    if data.ndim != 2:
        hint = "X[:, None] for one feature" if data.ndim == 1 else "reshape it"
        raise InputError(f"{where} has {data.ndim} dimensions {tuple(data.shape)}, needs 2: {hint}")
    if data.shape[0] == 0 or data.shape[1] == 0:
        raise InputError(f"{where} is empty, {data.shape[0]} × {data.shape[1]}: give samples × features")


def plain(data: NDArray) -> NDArray:
    """C order, native bytes, writable layout or not, no negative strides; small types kept as they are."""
    dtype = data.dtype.newbyteorder("=")
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    if dtype == np.float16:
        dtype = np.dtype(np.float32)
    return np.ascontiguousarray(data, dtype=dtype)


class ArraySource(Source):
    """Rows of a matrix in memory, of a memory map, or of an HDF5 data set that cannot be mapped."""

    def __init__(self, name: str, data: Any, where: str, options: Standardisation, part: slice) -> None:
        check_matrix(data, where)
        self.name, self._where = name, where
        self._part = range(*part.indices(data.shape[0]))
        need_two_samples(len(self._part), where)
        self.n, self.p = len(self._part), data.shape[1]
        if data.size * data.dtype.itemsize <= MEMORY_LIMIT:
            data = plain(data[...])
        self._data = data
        self._map = _mapping(data)
        self._is_numpy = isinstance(data, np.ndarray)
        self._lock = threading.Lock()
        self._touched = 0
        self._moments: Moments | None = None
        self._standardise(options, self._fingerprint())

    def _fingerprint(self) -> bytes:
        """SHA-256 of the values; of 64 rows for large data, whose mean and variance are hashed as well."""
        geometry = repr((self._data.shape, self._data.dtype.str, self._part)).encode()
        if self._map is None and self._is_numpy:
            return hashlib.sha256(geometry + hashlib.sha256(self._data.data).digest()).digest()
        index = np.unique(np.linspace(0, self.n - 1, 64).astype(np.int64))
        return hashlib.sha256(geometry + self._gather(index).tobytes()).digest()

    def _gather(self, index: Index) -> NDArray:
        rows = index * self._part.step + self._part.start
        if self._is_numpy:
            gathered = self._data[rows]
            self._release(len(index) * READ_AROUND + gathered.nbytes)
            return gathered
        # HDF5 wants increasing indices without repeats, and one thread at a time.
        unique, inverse = np.unique(rows, return_inverse=True)
        with self._lock:
            return self._data[unique][inverse]

    def _gather_slice(self, start: int, stop: int) -> NDArray:
        rows = self._part[start:stop]
        with self._lock:
            block = np.array(self._data[rows.start : rows.stop : rows.step])
        self._release(block.nbytes * self._part.step)
        return block

    def _release(self, count: int) -> None:
        if self._map is None:
            return
        self._touched += count
        if self._touched > RELEASE_AFTER:
            self._touched = 0
            self._map.madvise(mmap.MADV_DONTNEED)

    def _checked_blocks(self, size: int) -> Iterator[NDArray]:
        start = 0
        for block in self._raw_blocks(size):
            if block.dtype.kind == "f" and not np.isfinite(block).all():
                self._refuse_nonfinite(start, size)
            yield block
            start += len(block)

    def _refuse_nonfinite(self, start: int, size: int) -> None:
        """Names the first NaN or infinity and counts them all."""
        count, first = 0, ""
        for begin in range(start, self.n, size):
            block = self._gather_slice(begin, min(begin + size, self.n))
            bad = np.argwhere(~np.isfinite(block))
            if len(bad) and not first:
                row, column = bad[0]
                kind = "NaN" if np.isnan(block[row, column]) else "infinity"
                first = f"{kind} at row {self._part[begin + row]}, column {column}"
            count += len(bad)
        more = f" ({count} such values in all)" if count > 1 else ""
        raise InputError(f"{self._where}: {first}{more}, counted from 0: remove or impute them")

    def _raw_moments(self, diagonal: bool) -> Moments:
        """One pass over the data gives mean and covariance together, unless p is very large."""
        if self._moments is None:
            together = self.p <= WIDEST_ONE_PASS or not diagonal
            blocks = self._checked_blocks(self._block_size())
            self._moments = streamed_moments(blocks, diagonal=not together)
        m = self._moments
        if not diagonal and m.second.ndim == 1:
            return streamed_moments(self._raw_blocks(self._block_size()))
        second = m.second.diagonal().copy() if diagonal and m.second.ndim == 2 else m.second
        return Moments(m.n, m.mean, second)


def _mapping(data: Any) -> mmap.mmap | None:
    """The mmap under a memory map or a view of one."""
    base = data
    while isinstance(base, np.ndarray):
        inner = getattr(base, "_mmap", None)
        if inner is not None:
            return inner
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


class _Transposed:
    """The transpose of an HDF5 data set that is too large to be read."""

    def __init__(self, data: Any) -> None:
        self.data, self.dtype, self.ndim, self.size = data, data.dtype, data.ndim, data.size
        self.shape = data.shape[::-1]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> NDArray:
        return np.asarray(self.data[...] if rows is Ellipsis else self.data[:, rows]).T


def build(cfg: Any) -> Source:
    if cfg.path is None:
        raise InputError("data=array needs data.path=FILE (.npy, .npz, .csv, .tsv, .h5, .parquet or .mat)")
    path = existing(cfg.path, "a matrix")
    if is_hdf5(path):
        from sigmapca_cli.sources import prepared

        if prepared.is_prepared(path):
            return prepared.load(path, cfg)
    data = read_matrix(Path(path), cfg)
    check_matrix(data, str(path))
    if cfg.transpose:
        data = data.T if isinstance(data, np.ndarray) else _Transposed(data)
    options = Standardisation.of(cfg)
    return ArraySource("array", data, str(path), options, half_of(len(data), cfg.half))
