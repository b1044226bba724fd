"""Guards for reading HDF5 files that may be damaged, or made by a stranger to do harm.

A data set may claim any size (`stored`, `Budget`), keep its values in another file, or be a link to one
(`self_contained`). The walk over a file goes through HDF5's own names: h5py's objects take fifty times as long.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from sigmapca_cli.system.errors import SigmapcaError
from sigmapca_cli.system.untrusted_files import (
    ALWAYS_ALLOWED,
    NOTE_LIMIT,
    TOTAL_SPARSE,
    need_memory,
    reader,
    there,
)

# An HDF5 data set may claim more than it stores, by so much at most: its compressors come nowhere near.
SPARSE = 5000
DEEPEST = 64  # groups within groups: HDF5 takes minutes for the names of thousands
HARDLY = 1 << 20  # bytes that need no look at the memory that is left


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
            return there(plain.fileno(), size)
    except (OSError, SigmapcaError):  # a file in memory
        return size


class Item(NamedTuple):
    """A data set or a group of an HDF5 file; dtype: None for a group; shape: None for a group and where no value is."""

    name: str
    id: Any
    shape: tuple[int, ...] | None
    dtype: Any

    @property
    def bytes(self) -> int:
        """How much memory its values take; of texts of any length, their pointers."""
        return 0 if self.shape is None else math.prod(self.shape) * int(self.dtype.itemsize)


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
        if data.size * data.dtype.itemsize > HARDLY:
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
    left, found, attrs = NOTE_LIMIT, {}, item.attrs
    for name in attrs:
        left -= attrs.get_id(name).get_storage_size()
        if left >= 0:
            found[name] = value = attrs[name]
            left -= sum(len(t) for t in getattr(value, "flat", [value]) if isinstance(t, bytes | str))
        if left < 0:
            raise ValueError(f"its attributes hold more than {NOTE_LIMIT} bytes")
    return found


def as_text(value: Any) -> str:
    """A string of an HDF5 file, however it is stored: R, Julia and MATLAB write bytes of fixed length, or arrays."""
    if getattr(value, "shape", None):
        value = value.ravel()[0]
    return value.decode("utf-8", "replace").rstrip("\0") if isinstance(value, bytes) else str(value)


def has_format(path: Any, name: str) -> bool:
    """Return whether a file is HDF5 with this text in its attribute `format`, which each of our formats has."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            return as_text(file.attrs.get("format", "")) == name
    except Exception:  # damaged: the next reader raises the error
        return False


def self_contained(file: Any) -> Any:
    """An open h5py file, if nothing in it leads to another: HDF5 can link to any file, or keep its values there.

    Reading would show what somebody else's file names, and writing would change it. Raises ValueError, as `stored`.
    """
    for _ in items(file):
        pass
    return file


def within_budget(file: Any) -> dict[str, Item]:
    """Return what an open h5py file holds by name, as `items` finds it.

    Raises ValueError where its data sets together unfold to more than a `Budget`.
    """
    budget, found = Budget(held_bytes(file)), {item.name: item for item in items(file)}
    for item in found.values():
        budget.take(item, item.bytes)
    return found


def items(file: Any) -> Iterator[Item]:
    """Yield all that an open h5py file holds, a group before what is in it.

    Raises ValueError for what leads to another file, and for groups nested too deeply. A link within the file is
    followed to a data set, and not to a group: no item is walked twice.
    """
    import h5py

    root = h5py.h5g.open(file.id, b"/")
    waiting, seen = [("", root)], {h5py.h5o.get_info(root).addr}
    while waiting:
        path, group = waiting.pop()
        if path.count("/") > DEEPEST:
            raise ValueError(f"its groups are nested more than {DEEPEST} deep")
        for raw in sorted(group):
            item = item_in(group, raw, path)
            if item is None:
                continue
            yield item
            if item.dtype is None:
                address = h5py.h5o.get_info(item.id).addr
                if group.links.get_info(raw).type == h5py.h5l.TYPE_HARD and address not in seen:
                    seen.add(address)
                    waiting.append((f"{item.name}/", item.id))


def item_in(group: Any, raw: bytes, path: str = "") -> Item | None:
    """Return what a group of HDF5 holds by the name `raw`, below `path`; None for a link to nothing, and for a type.

    Raises ValueError for what leads to another file.
    """
    import h5py

    name = path + raw.decode("utf-8", "surrogateescape")
    if group.links.get_info(raw).type == h5py.h5l.TYPE_EXTERNAL:
        other = group.links.get_val(raw)[0].decode("utf-8", "replace")
        raise ValueError(f"{name} is a link into another file, {other}; copy it into this one")
    try:
        found = h5py.h5o.open(group, raw)
    except KeyError:  # a link to nothing
        return None
    if isinstance(found, h5py.h5g.GroupID):
        return Item(name, found, None, None)
    if not isinstance(found, h5py.h5d.DatasetID):
        return None
    layout = found.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise ValueError(f"{name} keeps its values in another file; copy them into this one")
    return Item(name, found, found.shape, found.dtype)
