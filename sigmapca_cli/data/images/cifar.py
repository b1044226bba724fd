"""CIFAR-10 and CIFAR-100: python or binary version, as a folder, a single batch or a .tar.gz."""

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
Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


@dataclass(frozen=True)
class Layout:
    """File names, label keys and label bytes of one data set."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    label_key: bytes
    label_bytes: int
    classes: int
    places: tuple[str, ...]

    def names(self, split: str) -> tuple[str, ...]:
        return {"train": self.train, "test": self.test, "all": self.train + self.test}[split]


LAYOUTS = {
    "cifar10": Layout(
        tuple(f"data_batch_{i}" for i in range(1, 6)),
        ("test_batch",),
        b"labels",
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
        b"fine_labels",
        2,
        100,
        ("cifar-100-python", "cifar-100-binary", "cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
    ),
}


def planes_to_images(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3072) colour planes → (N, 32, 32, 3)."""
    return np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _check_labels(labels: NDArray[np.int64], images: int, classes: int, where: str) -> None:
    if len(labels) != images:
        raise InputError(f"{where} holds {images} images but {len(labels)} labels: fetch it again")
    if images and (labels.min() < 0 or labels.max() >= classes):
        row = int(np.flatnonzero((labels < 0) | (labels >= classes))[0])
        raise InputError(
            f"{where}, record {row}: label {labels[row]} of {classes} classes: not this data set"
        )


def parse_python(content: bytes, layout: Layout, where: str) -> Batch:
    """One pickled batch: images and labels, checked."""
    batch = restricted_load(content, where)
    missing = [key for key in (b"data", layout.label_key) if key not in batch]
    if missing:
        raise InputError(f"{where} has no {missing[0].decode()!r} entry: not a batch of this data set")
    data = batch[b"data"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        shape = getattr(data, "shape", type(data).__name__)
        raise InputError(f"{where}: data is {shape}, not (N, {PIXELS}) bytes: fetch it again")
    try:
        labels = np.asarray(batch[layout.label_key], dtype=np.int64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: labels are not whole numbers: fetch it again") from None
    _check_labels(labels, len(data), layout.classes, where)
    return planes_to_images(data), labels


def parse_binary(content: bytes, layout: Layout, where: str) -> Batch:
    """One binary batch: records of label bytes (the fine label last) and 3,072 pixels."""
    record = layout.label_bytes + PIXELS
    if not content or len(content) % record:
        raise InputError(
            f"{where} has {len(content)} bytes, not a whole number of {record}-byte records: truncated, or "
            f"not this data set"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    labels = rows[:, layout.label_bytes - 1].astype(np.int64)
    _check_labels(labels, len(rows), layout.classes, where)
    return planes_to_images(rows[:, layout.label_bytes :]), labels


def _parse(content: bytes, name: str, layout: Layout, where: str) -> Batch:
    parse = parse_binary if name.endswith(".bin") else parse_python
    return parse(content, layout, where)


def _folder_members(folder: Path, wanted: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for name in wanted:
        for candidate in (name, name + ".bin"):
            if (folder / candidate).is_file():
                yield candidate, (folder / candidate).read_bytes()
                break


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
        yield from _folder_members(path, wanted)
    elif path.name.removesuffix(".bin") in layout.names("all"):
        yield path.name, path.read_bytes()
    elif _is_archive(path):
        yield from _archive_members(path, wanted)
    else:
        raise InputError(f"{path} is neither a CIFAR batch nor an archive: give its folder or .tar.gz")


def _check_order(names: list[str], layout: Layout, split: str, path: Path, enough: bool) -> None:
    wanted = layout.names(split)
    have = {name.removesuffix(".bin") for name in names}
    if not have:
        raise InputError(f"{path} holds no {split} batch (looked for {', '.join(wanted)}): check data.path")
    if enough or (path.is_file() and len(names) == 1):
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


def load(path: Path, dataset: str, split: str = "train", limit: int | None = None) -> Batch:
    """Images (N, 32, 32, 3) uint8 and fine labels (N,), in the original order; stops after `limit`."""
    layout = LAYOUTS[dataset]
    if path.is_dir() and not list(_present(path, layout)):
        nested = [path / place for place in layout.places if (path / place).exists()]
        path = nested[0] if nested else path
    batches: dict[str, Batch] = {}
    enough = False
    for name, content in _members(path, layout, split):
        batches[name] = _parse(content, name, layout, f"{path} ({name})" if path.name != name else str(path))
        enough = limit is not None and _leading(batches, layout, split) >= limit
        if enough:
            break
    _check_order(list(batches), layout, split, path, enough)
    ordered = sorted(batches, key=lambda name: layout.names("all").index(name.removesuffix(".bin")))
    parts = [batches[name] for name in ordered]
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _leading(batches: dict[str, Batch], layout: Layout, split: str) -> int:
    """Images in the unbroken run of batches from the first one (an archive may list them in any order)."""
    count = 0
    for wanted in layout.names(split):
        found = batches.get(wanted) or batches.get(wanted + ".bin")
        if found is None:
            break
        count += len(found[0])
    return count


def _present(folder: Path, layout: Layout) -> Iterator[Path]:
    for name in layout.names("all"):
        yield from (p for p in (folder / name, folder / f"{name}.bin") if p.is_file())


def build(cfg: DataConfig) -> PatchSource:
    layout = LAYOUTS[cfg.name]
    path = locate(cfg.name, cfg.path, layout.places, cfg.offline)
    limit = cfg.images if cfg.select == "first" else None
    images, _ = load(path, cfg.name, cfg.split, limit)
    return patch_source(cfg.name, images, cfg)
