"""What a run file holds, to compare two runs bit for bit."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.storage.write import RunWriter


def datasets(path: Path) -> dict[str, bytes]:
    """Return the bytes of every data set of a run file, or of run.h5 in a folder, but for what names its folder."""
    found: dict[str, bytes] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and name not in ("config", "overrides"):
            found[name] = np.asarray(item[()]).tobytes()

    with h5py.File(path / "run.h5" if path.is_dir() else path) as file:
        file.visititems(visit)
    return found


def log_block(writer: RunWriter, steps: Iterable[int], values: Mapping[str, Any]) -> None:
    """Log many steps at once: steps (n,), each value (n,)."""
    columns = {name: np.asarray(value, dtype=float).tolist() for name, value in values.items()}
    for index, step in enumerate(np.asarray(steps).tolist()):
        writer.log(int(step), {name: column[index] for name, column in columns.items()})
