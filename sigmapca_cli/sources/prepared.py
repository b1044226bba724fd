"""Prepared data: one HDF5 file that holds images or a matrix, its standardisation and where it came from.

Layout (`format = "sigmapca-data"`, `format_version` 1):

    attrs      kind (patches | ragged | matrix), name, source, options (JSON), checksum, created, versions;
               patch, stride, pad, patch_shape for images; sample_rate for signals
    /images    (N, H, W, C)      kind patches: pixels as they were
    /pixels    (all,)            kind ragged: images of different sizes, zero-padded, one after the other
    /sides     (N, 2)            kind ragged: padded rows and columns of each
    /raw       (n, p)            kind matrix: rows before standardisation
    /mean      (p,)              x = (raw − mean)/scale
    /scale     (p,)
    /x         (n, p) float32    the standardised rows, when materialised
    /truth/…                     filters, sources, mixing, where they are known
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sigmapca_cli
from sigmapca_cli.errors import InputError, RunFailed
from sigmapca_cli.sources import build as build_source
from sigmapca_cli.sources.base import MemorySource, Source, Standardisation, Truth, half_of
from sigmapca_cli.sources.config import STANDARDISE, YOUNGER_DATA, DataConfig
from sigmapca_cli.sources.exclusive import made_once, replace_whole
from sigmapca_cli.sources.folder import RaggedPatchSource, first_pixels
from sigmapca_cli.sources.locate import existing
from sigmapca_cli.sources.patches import PIXEL_EPSILON, PatchSource
from sigmapca_cli.untrusted_files import as_text, damaged, self_contained, stored

FORMAT, FORMAT_VERSION = "sigmapca-data", 1


def options_of(cfg: Any) -> dict[str, Any]:
    """The fields of a data group that its object holds; younger ones only where they change something."""
    held = {f.name: getattr(cfg, f.name) for f in fields(DataConfig) if hasattr(cfg, f.name)}
    return {
        name: value
        for name, value in held.items()
        if not (name in YOUNGER_DATA and value == YOUNGER_DATA[name]) and not (name == "recognise" and value)
    }


def default_name(cfg: Any) -> str:
    """NAME-12345678.h5: equal options give an equal name, so jobs that want the same data share one file."""
    text = json.dumps(options_of(cfg), sort_keys=True)
    return f"{cfg.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.h5"


def checksum(data: NDArray) -> str:
    """SHA-256 of shape, type and values."""
    digest = hashlib.sha256(repr((data.shape, data.dtype.str)).encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.hexdigest()


@contextmanager
def _written_whole(target: Path) -> Iterator[Any]:
    """An HDF5 file written aside and moved onto `target` when complete; leftovers of killed writers go."""
    import h5py

    for old in target.parent.glob(f".{target.name}.*.writing"):
        old.unlink(missing_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.writing")
    try:
        with h5py.File(aside, "w", locking=False) as file:
            yield file
        replace_whole(aside, target)
    except OSError as error:
        raise RunFailed(
            f"{target} cannot be written ({error.strerror or error}): is the disk full?"
        ) from None
    finally:
        aside.unlink(missing_ok=True)


def _write_common(file: Any, source: Source, cfg: Any, data: NDArray) -> None:
    file.attrs.update(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        name=source.name,
        source=str(getattr(cfg, "path", None) or f"data={cfg.name}"),
        options=json.dumps(options_of(cfg), sort_keys=True),
        checksum=checksum(data),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        sigmapca_version=sigmapca_cli.__version__,
        numpy_version=np.__version__,
    )
    file["mean"], file["scale"] = source.mean, source.scale
    for part in ("filters", "sources", "mixing"):
        value = getattr(source.truth, part, None)
        if value is not None:
            file[f"truth/{part}"] = value
    if source.truth is not None:
        file["truth"].attrs["kind"] = source.truth.kind


def _write(file: Any, source: Source, cfg: Any, materialise: bool) -> None:
    if isinstance(source, PatchSource):
        _write_common(file, source, cfg, source.images)
        file["images"] = source.images
        file.attrs["kind"] = "patches"
    elif isinstance(source, RaggedPatchSource):
        _write_common(file, source, cfg, source.pixels)
        file["pixels"], file["sides"] = source.pixels, source.sides
        file.attrs["kind"] = "ragged"
    elif isinstance(source, MemorySource):
        _write_common(file, source, cfg, source.X)
        file["raw"] = source.X
        file.attrs["kind"] = "matrix"
    else:
        raise InputError(f"data={source.name} is read from its own files: it needs no preparation")
    if isinstance(source, PatchSource | RaggedPatchSource):
        file.attrs.update(patch=source.patch, stride=source.stride, pad=source.pad)
        file.attrs["patch_shape"] = source.patch_shape
    if source.sample_rate is not None:
        file.attrs["sample_rate"] = source.sample_rate
    if materialise:
        _write_rows(file, source)


def _write_rows(file: Any, source: Source) -> None:
    """The standardised rows, a block at a time."""
    size = source.n * source.p * 4
    logging.getLogger("sigmapca").info("writing %d × %d rows, %.2f GB", source.n, source.p, size / 1e9)
    free = shutil.disk_usage(Path(file.filename).parent).free
    if size > free:
        raise InputError(
            f"the patch matrix needs {size / 1e9:.1f} GB, {free / 1e9:.1f} GB are free: leave it out"
        )
    x = file.create_dataset("x", (source.n, source.p), np.float32)
    start = 0
    for block in source.blocks():
        x[start : start + len(block)] = block
        start += len(block)


def prepare(cfg: Any, out: Path | None = None, materialise: bool = False) -> Path:
    """Write the data of a `data` group to one file, once, however many processes ask; the path of the file.

    `out` defaults to data/NAME-HASH.h5. A file that is there already is used when it was made with the same
    options, and is an InputError otherwise: nothing is overwritten.
    """
    target = Path("data") / default_name(cfg) if out is None else Path(out)
    with made_once(target) as ours:
        if ours:
            source = build_source(cfg)
            with _written_whole(target) as file:
                _write(file, source, cfg, materialise)
            return target
    _check_same(target, cfg, materialise)
    return target


def _check_same(target: Path, cfg: Any, materialise: bool) -> None:
    with open_prepared(target) as file:
        same = json.loads(as_text(file.attrs["options"])) == json.loads(json.dumps(options_of(cfg)))
        if not same or (materialise and "x" not in file):
            raise InputError(f"{target} exists with other options: remove it, or write to another file")


def extract_patches(cfg: Any, out: Path | None = None, materialise: bool = False) -> Path:
    """Images, patch geometry and standardisation of an image data set; the patch matrix when asked for."""
    if cfg.name not in ("natural", "cifar10", "cifar100", "mnist", "images"):
        raise InputError(
            f"data={cfg.name} has no patches: choose natural, cifar10, cifar100, mnist or images"
        )
    return prepare(cfg, out, materialise)


def mix_signals(cfg: Any, out: Path | None = None) -> Path:
    """Mixed signals with their sources, mixing matrix and sample rate."""
    if cfg.name != "signals":
        raise InputError(f"data={cfg.name} holds no signals: use data=signals")
    return prepare(cfg, out)


def sample_points(cfg: Any, out: Path | None = None) -> Path:
    """Rotated 2-D points, or planted data, with their true directions."""
    if cfg.name not in ("points", "planted"):
        raise InputError(f"data={cfg.name} holds no points: use data=points or data=planted")
    return prepare(cfg, out)


@contextmanager
def open_prepared(path: Path) -> Iterator[Any]:
    """The open HDF5 file, after a check that it is whole and of a format that this version reads."""
    import h5py

    with damaged(path, "prepare it again"), h5py.File(path, "r", locking=False) as file:
        self_contained(file)
        if as_text(file.attrs.get("format", "")) != FORMAT:
            raise InputError(f"{path} is not a prepared data file: use data=array for plain HDF5")
        version = int(file.attrs["format_version"])
        if version > FORMAT_VERSION:
            raise InputError(f"{path} has format version {version}, not {FORMAT_VERSION}: upgrade sigmapca")
        yield file


def is_prepared(path: Path) -> bool:
    """Whether a file carries the mark of this format."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            return as_text(file.attrs.get("format", "")) == FORMAT
    except Exception:  # damaged: the reader that comes next says so
        return False


CONTENT = {"patches": "images", "ragged": "pixels", "matrix": "raw"}


def load(path: Path, cfg: Any) -> Source:
    """The source in a prepared file, standardised as made; half, whiten and scale_input are `cfg`'s."""
    with open_prepared(path) as file:
        attrs, name = dict(file.attrs), as_text(file.attrs["name"])
        kind = as_text(attrs["kind"])
        data = stored(file[CONTENT[kind]])[...]
        sides = file["sides"][...].astype(np.int64) if kind == "ragged" else None
        truth = _read_truth(file)
        made = json.loads(as_text(attrs["options"]))
        if checksum(data) != as_text(attrs["checksum"]):
            raise InputError(f"{path} is damaged: its data do not match its checksum: prepare it again")
        geometry = _geometry(attrs, data, sides, kind)
    relative = 0.0 if kind == "matrix" else PIXEL_EPSILON
    options = Standardisation(*_scaling(made, cfg), relative, cfg.whiten, cfg.scale_input)
    if kind == "matrix":
        return _matrix(attrs, data, truth, options, cfg)
    shape, stride, pad = geometry
    if sides is None:
        images = data[half_of(len(data), cfg.half)]
        return PatchSource(name, images, shape[0], stride, pad, options)
    if cfg.half != "all":
        first = first_pixels(sides, shape[2])
        chosen = range(len(sides))[half_of(len(sides), cfg.half)]
        data = np.concatenate([data[first[i] : first[i + 1]] for i in chosen])
        sides = sides[list(chosen)]
    return RaggedPatchSource(name, sides, data, shape, stride, pad, options)


def _scaling(made: dict[str, Any], cfg: Any) -> tuple[str, float | None]:
    """(standardise, ε): as the data were prepared, unless the run asks for something else than its kind's default."""
    asked = getattr(cfg, "standardise", None)
    if not getattr(cfg, "recognise", True) or asked == STANDARDISE.get(cfg.name):
        return made["standardise"], made["epsilon"]  # older configurations have a value that took no part
    return str(asked), getattr(cfg, "epsilon", None)


def _geometry(attrs: dict[str, Any], data: NDArray, sides: NDArray | None, kind: str) -> Any:
    """(patch shape, stride, pad), or None for a matrix; ValueError where the data have another form.

    No checksum covers these numbers, and windows are views of memory: a wrong one must not reach beyond it.
    """
    if data.dtype.kind not in "biuf":
        raise ValueError(f"values of type {data.dtype}")
    if kind == "matrix":
        if data.ndim != 2:
            raise ValueError(f"a matrix of {data.ndim} dimensions")
        return None
    rows, cols, channels = (int(side) for side in attrs["patch_shape"])
    stride, pad = int(attrs["stride"]), int(attrs["pad"])
    if (
        min(rows, cols, channels, stride) < 1
        or not 0 <= pad < rows
        or rows != cols
        or rows != int(attrs["patch"])
    ):
        raise ValueError("its patch, stride or padding")
    if sides is None:
        fits = data.ndim in (3, 4) and (data.shape[3] if data.ndim == 4 else 1) == channels
    else:
        fits = data.ndim == 1 and sides.ndim == 2 and sides.shape[1] == 2 and len(sides) > 0
        fits = fits and rows <= sides.min() and sides.max() < 1 << 20
        fits = fits and int(first_pixels(sides, channels)[-1]) == len(data)
    if not fits:
        raise ValueError("its images do not have the size that it states")
    return (rows, cols, channels), stride, pad


def _read_truth(file: Any) -> Truth | None:
    if "truth" not in file:
        return None
    group = file["truth"]
    return Truth(as_text(group.attrs["kind"]), **{key: group[key][...] for key in group})


def _matrix(
    attrs: dict[str, Any], data: NDArray, truth: Truth | None, options: Standardisation, cfg: Any
) -> MemorySource:
    part = half_of(len(data), cfg.half)
    if truth is not None:
        truth = truth.in_part(part, turned=options.turns)
    source = MemorySource(as_text(attrs["name"]), data[part], options, truth)
    source.sample_rate = int(attrs["sample_rate"]) if "sample_rate" in attrs else None
    return source


def build(cfg: Any) -> Source:
    if cfg.path is None:
        raise InputError("data=prepared needs data.path=FILE, written by a prepare command")
    return load(existing(cfg.path, "a prepared file"), cfg)
