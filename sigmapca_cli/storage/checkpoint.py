"""Checkpoints: arrays and plain settings in one HDF5 file, without pickle, verified before it is believed.

The checksum behind the HDF5 part (see `files`) must be there and hold.
"""

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import file_image, read_whole
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged
from sigmapca_cli.system.untrusted_hdf5 import Budget, attributes, self_contained


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    meta: Mapping[str, Any],
    *,
    config_hash: str = "",
    data_hash: str = "",
) -> None:
    """Replace the checkpoint at `path` by these arrays and this JSON-able dictionary.

    A kill at any moment leaves the old checkpoint or the new one. Raises RunFailed (full disk), TypeError for
    what is neither an array of numbers nor JSON.
    """
    arrays = {name: np.asarray(value) for name, value in tensors.items()}
    for name, value in arrays.items():
        if value.dtype.kind not in "biufc":
            raise TypeError(f"checkpoint array {name!r} has dtype {value.dtype}: only numbers can be stored")
    text = json.dumps(dict(meta))

    def fill(file: h5py.File) -> None:
        file.attrs["format"] = fmt.CHECKPOINT_FORMAT
        file.attrs["format_version"] = fmt.CHECKPOINT_VERSION
        file.attrs["config_hash"] = config_hash
        file.attrs["data_hash"] = data_hash
        file.create_dataset("meta", data=text, dtype=h5py.string_dtype("utf-8"))
        group = file.create_group("tensors")
        for name, value in arrays.items():
            group.create_dataset(name, data=value)

    replace_file(Path(path), *file_image(fill))


def load(
    path: str | os.PathLike[str], *, config_hash: str | None = None, data_hash: str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the dictionary of a checkpoint: `(tensors, meta)`.

    Raises InputError in one line when the file is damaged or no checkpoint, has a later format, or belongs to
    another configuration or other data than the hashes given (None: not compared).
    """
    path = Path(path)
    image, whole = read_whole(path)
    if not image.startswith(b"\x89HDF"):
        raise InputError(f"{path}: not a checkpoint (not an HDF5 file)")
    if not whole:
        raise InputError(f"{path}: not a whole checkpoint (truncated, or written by another program)")
    with damaged(path, "remove it to train from the start"), h5py.File(io.BytesIO(image), "r") as file:
        self_contained(file)
        _check(path, attributes(file), config_hash, data_hash)
        tensors: dict[str, np.ndarray] = {}
        budget = Budget(len(image))

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                if item.dtype.kind not in "biufc":
                    raise ValueError(f"{name} holds no numbers")
                tensors[name] = budget.read(item)

        file["tensors"].visititems(visit)
        return tensors, json.loads(budget.read(file["meta"])[()])


def _check(path: Path, attrs: Mapping[str, Any], config_hash: str | None, data_hash: str | None) -> None:
    if attrs.get("format") != fmt.CHECKPOINT_FORMAT:
        raise InputError(f"{path}: an HDF5 file, but not a checkpoint")
    version = int(attrs["format_version"])
    if version != fmt.CHECKPOINT_VERSION:
        raise InputError(
            f"{path}: checkpoint format version {version}, this program reads {fmt.CHECKPOINT_VERSION}; "
            "resume with the version that wrote it"
        )
    for what, key, wanted in (
        ("another configuration", "config_hash", config_hash),
        ("other data", "data_hash", data_hash),
    ):
        if wanted is not None and attrs[key] != wanted:
            raise InputError(
                f"{path}: belongs to {what} ({attrs[key][:8] or 'unnamed'}, not {wanted[:8]}); "
                "resume with the original settings, or start a new run"
            )
