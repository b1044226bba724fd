"""CIFAR-10 and CIFAR-100: python or binary version, as a folder, a single batch or a .tar.gz."""

import itertools
import logging
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.images.patches import PatchSource, patch_source
from sigmapca_cli.data.locate import locate
from sigmapca_cli.data.readers.unpickle import restricted_load
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import reason

PIXELS = 3 * 32 * 32
# The largest official batch (CIFAR-100, training) has 155 MB, an archive unpacked 186 MB; one may claim anything.
LARGEST_MEMBER = 256 << 20
LARGEST_ARCHIVE = 1 << 30


@dataclass(frozen=True)
class Layout:
    """File names of one data set, its classes, and how many bytes of labels stand before the pixels of a record."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int
    classes: int
    places: tuple[str, ...]

    def names(self, split: str) -> tuple[str, ...]:
        return {"train": self.train, "test": self.test, "all": self.train + self.test}[split]


LAYOUTS = {
    "cifar10": Layout(
        tuple(f"data_batch_{i}" for i in range(1, 6)),
        ("test_batch",),
        1,
        10,
        (
            "cifar-10-batches-py",
            "cifar-10-batches-bin",
            "cifar-10-python.tar.gz",
            "cifar-10-binary.tar.gz",
        ),
    ),
    "cifar100": Layout(
        ("train",),
        ("test",),
        2,
        100,
        ("cifar-100-python", "cifar-100-binary", "cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
    ),
}


def planes_to_images(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3072) colour planes → (N, 32, 32, 3)."""
    return np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def parse_python(content: bytes, where: str) -> NDArray[np.uint8]:
    """Return the images of one pickled batch."""
    batch = restricted_load(content, where)
    if b"data" not in batch:
        raise InputError(f"{where} has no 'data' entry: not a batch of this data set")
    data = batch[b"data"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        shape = getattr(data, "shape", type(data).__name__)
        raise InputError(f"{where}: data is {shape}, not (N, {PIXELS}) bytes: fetch it again")
    return planes_to_images(data)


def parse_binary(content: bytes, layout: Layout, where: str) -> NDArray[np.uint8]:
    """Return the images of one binary batch: records of label bytes and 3,072 pixels."""
    record = layout.label_bytes + PIXELS
    if not content or len(content) % record:
        raise InputError(
            f"{where} has {len(content)} bytes, not a whole number of {record}-byte records: truncated, or "
            f"not this data set"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    # Nothing else in such a file says that it is of this data set.
    if (label := int(rows[:, layout.label_bytes - 1].max())) >= layout.classes:
        raise InputError(f"{where}: a label {label} of {layout.classes} classes: not this data set")
    return planes_to_images(rows[:, layout.label_bytes :])


def _folder_members(folder: Path, wanted: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of the batches that are wanted and there."""
    for name in wanted:
        yield from [file for file in (folder / name, folder / f"{name}.bin") if file.is_file()][:1]


def _archive_members(archive: Path, wanted: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Members are read into memory one by one; nothing is extracted to disk, whatever paths they name."""
    name = "its first member"
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                # Before the next one is looked for: to pass over a member is to unpack it.
                if member.offset_data + member.size > LARGEST_ARCHIVE:
                    raise tarfile.TarError(f"{member.size} bytes are too many")
                name = Path(member.name).name
                if member.isfile() and name.removesuffix(".bin") in wanted:
                    if member.size > LARGEST_MEMBER:
                        raise tarfile.TarError(f"{member.size} bytes are too many for a batch")
                    stream = tar.extractfile(member)
                    content = b"" if stream is None else stream.read()
                    if len(content) != member.size:
                        raise EOFError("the archive ends early")
                    yield name, content
    except InputError:  # of whoever uses the batches
        raise
    except Exception as error:  # the compressors and tarfile raise many types
        raise InputError(
            f"{archive} is truncated or damaged at {name[:60]!r} ({reason(error)}): fetch it again"
        ) from None


def _is_archive(path: Path) -> bool:
    """By its name, or by its content where that can be read at all."""
    if path.name.endswith((".gz", ".tgz", ".tar", ".bz2", ".xz")):
        return True
    try:
        return tarfile.is_tarfile(path)
    except Exception:  # a damaged compressed stream
        return False


def _members(path: Path, layout: Layout, split: str) -> Iterator[tuple[str, bytes]]:
    wanted = layout.names(split)
    if path.is_dir():
        yield from ((file.name, file.read_bytes()) for file in _folder_members(path, wanted))
    elif path.name.removesuffix(".bin") in layout.names("all"):
        yield path.name, path.read_bytes()
    elif _is_archive(path):
        yield from _archive_members(path, wanted)
    else:
        raise InputError(f"{path} is neither a CIFAR batch nor an archive: give its folder or .tar.gz")


def _check_order(have: list[str], layout: Layout, split: str, path: Path, enough: bool) -> None:
    wanted = layout.names(split)
    if not have:
        raise InputError(f"{path} holds no {split} batch (looked for {', '.join(wanted)}): check data.path")
    if enough or (path.is_file() and len(have) == 1):
        return
    missing = [name for name in wanted if name not in have]
    last = max(i for i, name in enumerate(wanted) if name in have)
    if split != "all" and missing and wanted.index(missing[0]) < last:
        raise InputError(f"{path} is partial: it has {wanted[last]}, but no {missing[0]}: fetch it again")
    if missing:
        logging.getLogger("sigmapca").warning(
            "%s is partial: %s not there, using %d of %d batches",
            path,
            ", ".join(missing),
            len(have),
            len(wanted),
        )


def load(path: Path, dataset: str, split: str = "train", limit: int | None = None) -> NDArray[np.uint8]:
    """Return the images (N, 32, 32, 3), in the original order; stops after `limit`. Labels are passed over."""
    layout = LAYOUTS[dataset]
    if path.is_dir() and not any(_folder_members(path, layout.names("all"))):
        path = next((path / place for place in layout.places if (path / place).exists()), path)
    batches: dict[str, NDArray[np.uint8]] = {}
    enough = False
    for name, content in _members(path, layout, split):
        where = f"{path} ({name})" if path.name != name else str(path)
        binary = name.endswith(".bin")
        images = parse_binary(content, layout, where) if binary else parse_python(content, where)
        batches[name.removesuffix(".bin")] = images
        enough = limit is not None and _leading(batches, layout.names(split)) >= limit
        if enough:
            break
    _check_order(list(batches), layout, split, path, enough)
    return np.concatenate([batches[name] for name in layout.names("all") if name in batches])


def _leading(batches: dict[str, NDArray[np.uint8]], wanted: tuple[str, ...]) -> int:
    """Images in the unbroken run of batches from the first one (an archive may list them in any order)."""
    return sum(len(batches[name]) for name in itertools.takewhile(batches.__contains__, wanted))


def build(cfg: DataConfig) -> PatchSource:
    layout = LAYOUTS[cfg.name]
    path = locate(cfg.name, cfg.path, layout.places, cfg.offline)
    limit = cfg.images if cfg.select == "first" else None
    return patch_source(cfg.name, load(path, cfg.name, cfg.split, limit), cfg)
