"""MNIST and its relatives in IDX files, plain or gzipped, whatever their names say."""

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.patches import PatchSource, patch_source
from sigmapca_cli.data.locate import locate
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import reason
from sigmapca_cli.system.untrusted_files import need_memory

STEMS = {"train": "train", "test": "t10k"}
PLACES = ("mnist", "MNIST", "MNIST/raw")
TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> NDArray:
    """Return the array in an IDX file: 0 0 type ndim, big-endian sizes, then values; every length is checked.

    Only as many bytes are unpacked as the header states: a megabyte of gzip can hold a gigabyte of zeros.
    """
    with path.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            return _idx(file, path)
    except (OSError, EOFError, zlib.error) as error:
        kind = "gzip" if packed else "IDX"
        raise InputError(
            f"{path} is a truncated or damaged {kind} file ({reason(error)}): fetch it again"
        ) from None


def _idx(file: Any, path: Path) -> NDArray:
    head = file.read(4)
    if len(head) < 4:
        raise InputError(f"{path} has {len(head)} bytes, no IDX header: fetch it again")
    if head[:2] != b"\0\0" or head[2] not in TYPES or not 1 <= head[3] <= 4:
        magic = int.from_bytes(head, "big")
        raise InputError(f"{path} is not an IDX file: its magic number is {magic}, images have 2051")
    dtype, ndim = np.dtype(TYPES[head[2]]), head[3]
    sides = file.read(4 * ndim)
    if len(sides) < 4 * ndim:
        raise InputError(f"{path} is truncated: its header ends early: fetch it again")
    shape = tuple(int(side) for side in np.frombuffer(sides, ">u4"))
    size = math.prod(shape) * dtype.itemsize
    need_memory(size, path, "fetch it again")
    content = file.read(size + 1)
    if len(content) != size:
        state, head_size = ("truncated" if len(content) < size else "too long"), 4 + 4 * ndim
        held = f"{head_size + len(content)} bytes" if len(content) < size else "more"
        raise InputError(f"{path} is {state}: {held}, but {shape} needs {head_size + size}: fetch it again")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def read_images(path: Path) -> NDArray:
    images = read_idx(path)
    if images.ndim != 3:
        magic = int.from_bytes(bytes([0, 0, 8, images.ndim]), "big")
        raise InputError(f"{path} holds {images.ndim}-d data (magic number {magic}), not images (2051)")
    return images


def _find(folder: Path, split: str) -> Path | None:
    """Return the file of images of one split, by either of its names, packed or not."""
    names = (f"{STEMS[split]}-images{sign}idx3-ubyte{end}" for sign in "-." for end in ("", ".gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)


def load_split(folder: Path, split: str) -> NDArray[np.uint8]:
    """Return the images (N, 28, 28) of one split."""
    images = _find(folder, split)
    if images is None:
        other = "test" if split == "train" else "train"
        hint = f"data.split={other}" if _find(folder, other) else "check data.path"
        raise InputError(f"{folder} has no {STEMS[split]}-images-idx3-ubyte(.gz) for split {split}: {hint}")
    return read_images(images)


def load(path: Path, split: str) -> NDArray:
    """Return the images of an IDX file, or of a folder with MNIST's file names."""
    if path.is_file():
        return read_images(path)
    splits = ("train", "test") if split == "all" else (split,)
    return np.concatenate([load_split(path, each) for each in splits])


def build(cfg: DataConfig) -> PatchSource:
    path = locate("mnist", cfg.path, PLACES, cfg.offline)
    return patch_source("mnist", load(path, cfg.split), cfg)
