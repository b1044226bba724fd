"""Which kind of data a file or a folder holds, by names and first bytes, and how it is read where nothing is said."""

from pathlib import Path
from typing import Any

from sigmapca_cli.data.cache.prepared import is_prepared
from sigmapca_cli.data.images.cifar import LAYOUTS
from sigmapca_cli.data.images.pictures import SUFFIXES
from sigmapca_cli.data.locate import existing
from sigmapca_cli.data.matrix.concatenated import files_of, parts_of
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_zarr import is_zarr


def options_for(path: str | Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return fields of the data group to look at a path with: those given, and what the path itself says.

    The kind of its data; the half of MNIST that a folder has; channels as they were recorded, because training mixes a
    folder of sounds by default.
    """
    kind, place = options.get("name") or kind_of_path(str(path)), Path(path).expanduser()
    found: dict[str, Any] = {}
    if kind == "mnist" and place.is_dir():
        found["split"] = "train" if any(p.name.startswith("train") for p in place.iterdir()) else "test"
    if kind == "signals":
        found["mix"] = False
    return {**found, **options, "name": kind}


def kind_of_path(path: str) -> str:
    """Return the kind of source that reads a path or a pattern of files, as `guess_kind`."""
    place = Path(path).expanduser()
    if not place.exists() and len(files_of(path)) > 0:
        return "array"
    return guess_kind(existing(path, "data"))


def guess_kind(path: Path) -> str:
    """Return the kind of source that reads a path, by names and first bytes."""
    if path.is_dir():
        return _guess_folder(path)
    if path.suffix.lower() in SUFFIXES:
        return "images"
    if path.suffix.lower() == ".wav":
        return "signals"
    for dataset, layout in LAYOUTS.items():
        if path.name in layout.places or path.name.removesuffix(".bin") in layout.names("all"):
            return dataset
    if "idx" in path.name and "ubyte" in path.name:
        return "mnist"
    return "prepared" if is_prepared(path) else "array"


def _guess_folder(folder: Path) -> str:
    if is_zarr(folder):
        return "array"
    names = {p.name for p in folder.iterdir()}
    for dataset, layout in LAYOUTS.items():
        members = set(layout.names("all"))
        if names & {*members, *(f"{m}.bin" for m in members), *layout.places}:
            return dataset
    if any("idx3-ubyte" in name for name in names):
        return "mnist"
    if any(name.lower().endswith(".wav") for name in names):
        return "signals"
    if any(p.suffix.lower() in SUFFIXES for p in folder.rglob("*")):
        return "images"
    if parts_of(folder) != [folder]:
        return "array"
    raise InputError(
        f"{folder} holds no data of a known kind (images, WAV, CIFAR, MNIST, tables): check the path"
    )
