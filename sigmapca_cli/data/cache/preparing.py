"""Writer of prepared data: one HDF5 file for images or a matrix, which `data.cache.prepared` reads."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sigmapca_cli
from sigmapca_cli.data import build
from sigmapca_cli.data.build_once import made_once
from sigmapca_cli.data.cache.prepared import FORMAT, FORMAT_VERSION, checksum, open_prepared
from sigmapca_cli.data.config import YOUNGER_DATA, DataConfig, kinds_of
from sigmapca_cli.data.images.folder import RaggedPatchSource
from sigmapca_cli.data.images.patches import PatchSource
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.source import Source
from sigmapca_cli.system.atomic import remove_asides, replacing
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_hdf5 import as_text


def options_of(cfg: DataConfig) -> dict[str, Any]:
    """Return the fields of a data group; fields that older versions lack only if they differ from the default."""
    held = {f.name: getattr(cfg, f.name) for f in fields(DataConfig)}
    return {
        name: value
        for name, value in held.items()
        if not (name in YOUNGER_DATA and value == YOUNGER_DATA[name]) and not (name == "recognise" and value)
    }


def default_name(cfg: DataConfig) -> str:
    """Return NAME-12345678.h5: equal options give an equal name, so that jobs with the same data share one file."""
    text = json.dumps(options_of(cfg), sort_keys=True)
    return f"{cfg.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.h5"


@contextmanager
def _written_whole(target: Path) -> Iterator[Any]:
    """Yield an HDF5 file that is renamed to `target` when complete; files left by killed writers are removed."""
    import h5py

    remove_asides(target.parent, [target.name])  # only this process may make it now
    with replacing(target) as aside, h5py.File(aside, "w", locking=False) as file:
        yield file


def _write_common(file: Any, source: Source, cfg: DataConfig, data: NDArray) -> None:
    file.attrs.update(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        name=source.name,
        source=str(cfg.path or f"data={cfg.name}"),
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


def _write(file: Any, source: Source, cfg: DataConfig) -> None:
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


# What each command writes, and the words for data that hold nothing of it.
HOLDS = {
    "pixels": "has no patches",
    "signals": "holds no signals",
    "made": "holds no points",
}


def prepare(cfg: DataConfig, out: Path | None = None, holds: str | None = None) -> Path:
    """Write the data of a `data` group to one file, once for all processes; return the path of the file.

    `out` defaults to data/NAME-HASH.h5. An existing file is used if it has the same options. Raise InputError if it
    has other options, because nothing is overwritten, and for data that hold something else (a key of `HOLDS`).
    """
    if holds is not None and cfg.name not in kinds_of(holds):
        raise InputError(f"data={cfg.name} {HOLDS[holds]}: choose one of {', '.join(kinds_of(holds))}")
    target = Path("data") / default_name(cfg) if out is None else Path(out)
    with made_once(target) as ours:
        if ours:
            source = build(cfg)
            with _written_whole(target) as file:
                _write(file, source, cfg)
            return target
    with open_prepared(target) as file:
        if json.loads(as_text(file.attrs["options"])) != json.loads(json.dumps(options_of(cfg))):
            raise InputError(f"{target} exists with other options: remove it, or write to another file")
    return target
