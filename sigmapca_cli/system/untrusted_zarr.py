"""Guards for reading Zarr stores that may be damaged, or made by a stranger to do harm.

The metadata of a store name the codecs that unpack its values: one of them is Python's pickle, which runs code. They
are read here, by JSON alone, before a library of Zarr sees the store. A chunk may claim any size, and be a link.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import need_memory, read_bytes, refuse_irregular
from sigmapca_cli.system.untrusted_hdf5 import DEEPEST, SPARSE

DEFLATED = {"gzip": 31, "zlib": 15}
"""Compressors whose chunks do not say how long they become, with the window that zlib reads them by."""
COMPRESSORS = {*DEFLATED, "blosc", "zstd", "lz4"}
HARMLESS = {"bytes", "transpose", "crc32c", "vlen-utf8", "delta", "shuffle", "fixedscaleoffset", "astype"}
"""Codecs that change numbers, or their order, and lengthen them by a fixed factor at most."""
MOST_CODECS = 16
"""Codecs of an array: a library makes an object of each, and compares it with the others."""
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
METADATA_LIMIT = 64 << 20
ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Stored:
    """An array of a store as its metadata describe it: its folder, the version of Zarr, its shape and chunks.

    named: each dimension has a name. itemsize: bytes of a value; text: values are texts of any length.
    """

    folder: Path
    version: Literal[2, 3]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    codecs: tuple[str, ...]
    named: bool
    itemsize: int
    text: bool

    @property
    def largest(self) -> int:
        """Return the bytes that a chunk may unfold to."""
        count = math.prod(self.chunks)
        return (1 << 20) + count * (1024 if self.text else 2 * max(self.itemsize, 8))


def is_zarr(folder: Path) -> bool:
    """Return whether a folder is a Zarr store, of version 2 or 3."""
    return any((folder / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def arrays_of(root: Path) -> dict[str, Stored]:
    """Return the arrays of a store by their names, such as "group/x"; "" is the store itself.

    Raise InputError for codecs that are not known to be harmless, links, and groups nested too deeply.
    """
    found: dict[str, Stored] = {}
    waiting = [("", root)]
    while waiting:
        name, folder = waiting.pop()
        if name.count("/") > DEEPEST:
            raise InputError(f"{root}: its groups are nested more than {DEEPEST} deep")
        if (array := described(folder)) is not None:
            refuse_codecs(root, name, array.codecs)
            found[name] = array
        elif is_zarr(folder):
            inside = (entry.name for entry in os.scandir(folder) if folder_at(entry))
            waiting += [(f"{name}/{one}".lstrip("/"), folder / one) for one in inside]
    return dict(sorted(found.items()))


def folder_at(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder. Raise InputError for a link, which is not followed."""
    if entry.is_symlink():
        refuse_irregular(entry.path)
    return entry.is_dir(follow_symlinks=False)


def described(folder: Path) -> Stored | None:
    """Return the array whose metadata a folder has; None if it has none, or those of a group."""
    if (folder / "zarr.json").exists():
        found = json.loads(read_bytes(folder / "zarr.json", METADATA_LIMIT))
        if found.get("node_type") != "array":
            return None
        grid, codecs = found["chunk_grid"], found["codecs"]
        names = tuple(str(codec["name"]) for codec in codecs)
        if grid["name"] != "regular" or found.get("storage_transformers"):
            names += (f"{grid['name']} chunks",)
        chunks, kind = grid["configuration"]["chunk_shape"], found["data_type"]
        shape, dimensions = tuple(found["shape"]), found.get("dimension_names") or []
        named = len(dimensions) == len(shape) and all(dimensions)
        return Stored(folder, 3, shape, tuple(chunks), names, named, *size_of(kind))
    if (folder / ".zarray").exists():
        found = json.loads(read_bytes(folder / ".zarray", METADATA_LIMIT))
        each = [*(found.get("filters") or []), *([found["compressor"]] if found.get("compressor") else [])]
        names = tuple(str(codec["id"]) for codec in each)
        kind = found["dtype"]
        if kind == "|O" and "vlen-utf8" not in names:
            names += ("Python objects",)
        said = (
            json.loads(read_bytes(folder / ".zattrs", METADATA_LIMIT))
            if (folder / ".zattrs").exists()
            else {}
        )
        named = len(said.get("_ARRAY_DIMENSIONS", ())) == len(found["shape"])
        return Stored(folder, 2, tuple(found["shape"]), tuple(found["chunks"]), names, named, *size_of(kind))
    return None


def size_of(kind: Any) -> tuple[int, bool]:
    """Return the bytes of a value of this type at most, and whether it is a text of any length."""
    words = json.dumps(kind)
    numbers = [int(number) for number in re.findall(r"\d+", words)]
    if isinstance(kind, str) and kind[:1] in "<>|=":  # "<f8"; characters have four bytes
        return sum(numbers) * (4 if kind[1:2] == "U" else 1), kind == "|O"
    return max(1, sum(numbers) // (1 if isinstance(kind, dict) else 8)), not numbers and kind != "bool"


def refuse_codecs(root: Path, name: str, codecs: tuple[str, ...]) -> None:
    """Raise InputError for codecs beyond those known to be harmless, and for two compressors one upon the other."""
    if len(codecs) > MOST_CODECS:
        raise InputError(
            f"{root}: array {name or 'at its root'} has {len(codecs)} codecs: write it again with one"
        )
    plain = [plain_name(codec) for codec in codecs]
    unknown = [codec for codec in plain if codec not in COMPRESSORS | HARMLESS]
    if unknown or sum(codec in COMPRESSORS for codec in plain) > 1:
        what = f"codec {unknown[0]!r}" if unknown else f"two compressors ({', '.join(plain)})"
        raise InputError(
            f"{root}: array {name or 'at its root'} needs {what}, which is not read: save it with zstd, blosc or gzip"
        )


def check_chunks(array: Stored, where: object) -> None:
    """Raise InputError for links among the chunks, and for sizes beyond what is stored or fits in memory."""
    names = [plain_name(codec) for codec in array.codecs]
    compressor = next((name for name in names if name in COMPRESSORS), None)
    behind = 4 if names[-1:] == ["crc32c"] else 0
    need_memory(2 * array.largest, where, "save it in smaller chunks")
    there = 0
    for path in chunks_in(array.folder):
        data = read_bytes(path, array.largest)
        there += len(data)
        if unfolded(data[: len(data) - behind], compressor, array.largest) > array.largest:
            raise InputError(
                f"{where}: chunk {path.name} of {array.folder.name} unfolds to more than it may hold"
            )
    claimed = array.itemsize * math.prod(array.shape)
    if claimed > SPARSE * max(there, 1 << 16):
        raise InputError(f"{where} claims {claimed / 1e9:.1f} GB and stores {there} bytes: write it again")


def plain_name(codec: str) -> str:
    """Return the name of a codec without the family that Zarr 3 puts before it."""
    return codec.removeprefix("numcodecs.")


def chunks_in(folder: Path) -> Iterator[Path]:
    """Yield the files of chunks in the folder of an array."""
    waiting = [folder]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if folder_at(entry):
                waiting.append(Path(entry.path))
            elif entry.name not in METADATA:
                yield Path(entry.path)


def unfolded(data: bytes, compressor: str | None, limit: int) -> int:
    """Return the bytes that a chunk unfolds to: what it says, or counted up to the limit where it does not say it."""
    if compressor in DEFLATED:
        return inflated(data, DEFLATED[compressor], limit)
    if compressor == "zstd":
        return of_zstd(data, limit)
    if compressor == "blosc":
        return int.from_bytes(data[4:8], "little")
    return int.from_bytes(data[:4], "little") if compressor == "lz4" else len(data)


def inflated(data: bytes, window: int, limit: int) -> int:
    """Return the length of the streams of zlib or gzip in a chunk, counted up to the limit."""
    count, unpacking = 0, zlib.decompressobj(window)
    while data and count <= limit:
        count += len(unpacking.decompress(data, 1 << 20))
        data = unpacking.unconsumed_tail or unpacking.unused_data
        if unpacking.eof:
            unpacking = zlib.decompressobj(window)
    return count


def of_zstd(data: bytes, limit: int) -> int:
    """Return the length of the frames of Zstandard (RFC 8878): what each says, else 128 KiB for each of its blocks."""
    count, place = 0, 0
    while place < len(data):
        if data[place : place + 4] != ZSTD:
            return limit + 1
        flags = data[place + 4]
        single = bool(flags & 32)
        place += 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        width = (1 if single else 0, 2, 4, 8)[flags >> 6]
        said = int.from_bytes(data[place : place + width], "little") + (256 if width == 2 else 0)
        place, blocks, last = place + width, 0, False
        while not last and place < len(data):
            head = int.from_bytes(data[place : place + 3], "little")
            last, blocks = bool(head & 1), blocks + 1
            place += 3 + (1 if (head >> 1) & 3 == 1 else head >> 3)
        place += 4 if flags & 4 else 0
        count += said if width else blocks << 17
    return count
