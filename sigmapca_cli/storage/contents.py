"""What run.h5 holds, read in one opening: its attributes, and the arrays that are small.

Another program may have put a group, a text or another shape where one of these belongs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import reading, surveyed
from sigmapca_cli.storage.summary import check_attrs, noted_summary, plain
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_hdf5 import Budget, Item, as_text, attributes, held_bytes

READ_AT_ONCE = 1 << 14
"""Bytes of an array that is read with the rest; a larger one is read when it is asked for."""


class Contents:
    """What a run file held when it was opened.

    attrs: its attributes, as JSON can hold them. patch_shape: (rows, columns, channels) where a filter is a patch.

    Raises InputError for a file that is damaged, no run, or of a later format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._small: dict[str, np.ndarray] = {}
        self.patch_shape: tuple[int, int, int] | None = None
        noted = noted_summary(path)
        with surveyed(path) as (file, items):
            attrs = {n: plain(v) for n, v in attributes(file).items()} if noted is None else noted["attrs"]
            check_format(path, attrs)
            check_layout(items)
            self.attrs = check_attrs(attrs)
            arrays = {name: item for name, item in items.items() if item.dtype is not None}
            self._names = dict.fromkeys(sorted(arrays, key=lambda name: name.split("/")))
            for name, item in arrays.items():
                # Texts of any length may be long, so only a single one is read with the rest.
                several = item.shape is not None and item.dtype.kind != "O" and item.bytes <= READ_AT_ONCE
                if several or item.shape == ():
                    self._small[name] = _values(item)
            shape = file["filters"].attrs.get("patch_shape") if "filters" in items else None
            if shape is not None:
                self.patch_shape = (int(shape[0]), int(shape[1]), int(shape[2]))

    def array(self, name: str) -> np.ndarray | None:
        """Return one stored array by its place in the file, or None where there is none."""
        if name in self._small:
            return self._small[name].copy()
        if name not in self._names:
            return None
        with reading(self._path) as file:
            return Budget(held_bytes(file)).read(file[name])

    def group(self, name: str) -> dict[str, np.ndarray]:
        """Return every array below a group, by its name within it."""
        inside = f"{name}/"
        found = {
            full.removeprefix(inside): self.array(full) for full in self._names if full.startswith(inside)
        }
        return {key: value for key, value in found.items() if value is not None}


def _values(item: Item) -> np.ndarray:
    """Return the values of a small data set, texts of any length as objects."""
    if item.dtype.kind == "O":
        return np.asarray(Budget(0).read(h5py.Dataset(item.id)))
    found: np.ndarray = np.empty(item.shape or (), item.dtype)
    if found.size:
        item.id.read(h5py.h5s.ALL, h5py.h5s.ALL, found)
    return found


def check_format(path: Path, attrs: Any) -> None:
    """Refuse, in words, an HDF5 file that is not a run, or a run of a later format."""
    found = attrs.get("format")
    if found is None or as_text(found) != fmt.FORMAT:
        named = f" (its format says {plain(found)!r})" if found is not None else ""
        raise InputError(f"{path}: an HDF5 file, but not a sigmapca run{named}")
    version = int(attrs.get("format_version", 0))
    if version > fmt.FORMAT_VERSION:
        raise InputError(
            f"{path}: run format version {version}, newer than this program's {fmt.FORMAT_VERSION}; update it"
        )


TEXTS = ("config", "overrides")
GROUPS = ("metrics", "evaluation", "evaluation/identifiability")
TEXT_ARRAYS = ("feature_name", "grid_name")
NUMBER_KINDS = "biuf"


def check_layout(items: Mapping[str, Item]) -> None:
    """Raise ValueError, for `reading` to put into words, where an item has another kind or shape than the format says.

    items: the data sets and groups of the file by name. Arrays that share an axis (`format.ARRAYS`) have the same
    length along it. What the format does not name may be anything.
    """
    lengths: dict[str, tuple[int, str]] = {}
    for name, axes in fmt.ARRAYS.items():
        if name not in items:
            continue
        array = _data_set(items, name, len(axes), "" if name in TEXT_ARRAYS else NUMBER_KINDS)
        for axis, length in zip(axes, array.shape or (), strict=True):
            known, first = lengths.setdefault(axis, (length, name))
            if length != known:
                raise ValueError(f"{name} has {length} {axis}s, {first} has {known}")
    for axis in (*lengths, "step"):
        if axis in items:
            _data_set(items, axis, 1, NUMBER_KINDS)
    for name in TEXTS:
        if name in items and _data_set(items, name, 0).dtype.kind not in "SO":
            raise ValueError(f"{name} holds no text")
    for name in GROUPS:
        if name in items and items[name].dtype is not None:
            raise ValueError(f"{name} is an array, where a group belongs")
    for name, dimensions in fmt.EVALUATION.items():
        if f"evaluation/{name}" in items:
            _data_set(items, f"evaluation/{name}", dimensions, NUMBER_KINDS)
    components = lengths.get("component", (0, ""))[0]
    for name, shape in (("verdict", (components, components)), ("identified", (components,))):
        found = items.get(f"evaluation/identifiability/{name}")
        if found is not None and found.shape != shape:
            raise ValueError(f"evaluation/identifiability/{name} is not of {components} components")
    # Metrics are columns of one table.
    columns = [_data_set(items, name, 1, NUMBER_KINDS) for name in items if name.startswith("metrics/")]
    if len({column.shape for column in columns}) > 1:
        raise ValueError("the metrics differ in length")


def _data_set(items: Mapping[str, Item], name: str, dimensions: int | None, kinds: str = "") -> Item:
    """Return a data set that has so many dimensions, and values of one of NumPy's `kinds`."""
    item = items[name]
    if item.dtype is None:
        raise ValueError(f"{name} is a group, where an array belongs")
    if item.shape is None or dimensions not in (None, len(item.shape)):
        shape = "no values" if item.shape is None else f"{len(item.shape)} dimensions"
        raise ValueError(f"{name} has {shape}, where {dimensions} belong")
    if kinds and item.dtype.kind not in kinds:
        raise ValueError(f"{name} holds no numbers")
    return item
