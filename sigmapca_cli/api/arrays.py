"""Copies of rows in memory, written once beside the runs: a run can then be evaluated, resumed and made again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError

FOLDER = "arrays"


def place_of(rows: Any, outputs: str | None) -> Path:
    """Return where the copy of rows lies: <outputs>/arrays/<hash of the values>.npy, or .npz if they are sparse.

    The same values have the same file. rows: as `data.matrix.held.as_rows` returns them.
    """
    dense = isinstance(rows, np.ndarray)
    kind = (rows.dtype.descr, rows.shape) if dense else (rows.shape, rows.dtype.str)
    digest = hashlib.sha256(repr(kind).encode())
    for part in (rows,) if dense else (rows.indptr, rows.indices, rows.data):
        digest.update(np.ascontiguousarray(part).view(np.uint8).reshape(-1).data)
    return outputs_root(outputs) / FOLDER / f"{digest.hexdigest()[:20]}{'.npy' if dense else '.npz'}"


def keep(rows: Any, path: Path) -> None:
    """Write the copy of rows, unless it is there. Raise InputError if its folder cannot be made."""
    if path.exists():
        return
    folder_of(path)
    with replacing(path) as aside, open(aside, "wb") as file:
        if isinstance(rows, np.ndarray):
            np.save(file, rows, allow_pickle=False)
        else:
            from scipy import sparse

            sparse.save_npz(file, rows, compressed=False)


def folder_of(path: Path) -> None:
    """Make the folder of a copy. Raise InputError if it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{path.parent}: cannot be created ({problem.strerror}); give outputs=") from None
