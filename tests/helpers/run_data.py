"""What a run file holds, to compare two runs bit for bit."""

from pathlib import Path

import h5py
import numpy as np


def datasets(path: Path) -> dict[str, bytes]:
    """Return the bytes of every data set of a run file, or of run.h5 in a folder, but for what names its folder."""
    found: dict[str, bytes] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and name not in ("config", "overrides"):
            found[name] = np.asarray(item[()]).tobytes()

    with h5py.File(path / "run.h5" if path.is_dir() else path) as file:
        file.visititems(visit)
    return found
