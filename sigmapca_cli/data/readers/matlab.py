"""Reader of MATLAB 5 files, by SciPy: matrices, fields of structures, and cells of texts as names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.hdf5 import pick
from sigmapca_cli.data.readers.table import Table, names_beside
from sigmapca_cli.system.untrusted_files import damaged, need_memory

DEEPEST = 8  # structures within structures


def read_mat(path: Path, cfg: DataConfig) -> Table:
    """Return one matrix of a MATLAB 5 file, such as "x" or the field "data.x" of a structure.

    A cell array of one string per column gives the names.
    """
    from scipy.io import loadmat, whosmat

    with damaged(path, "save it again (MATLAB 5 format)"):
        sizes = [
            float(np.prod(shape, dtype=float)) * 8 for _, shape, kind in whosmat(path) if kind != "sparse"
        ]
        need_memory(sum(sizes), path, "save one variable, or .npy or .h5, which are read from disk")
        variables = loadmat(path)
    found = {
        name: value
        for variable, held in variables.items()
        if not variable.startswith("__")
        for name, value in fields_of(variable, held)
    }
    cells = {
        name: np.array([str(np.ravel(v)[0]) if np.size(v) else "" for v in value.ravel()])
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "O"
    }
    names = [name for name, value in found.items() if np.ndim(value) == 2 and name not in cells]
    if len(wide := [name for name in names if min(found[name].shape) > 1]) == 1:
        names = wide  # in MATLAB numbers and vectors are matrices too
    if more := [name for name, value in found.items() if np.ndim(value) > 2 and not wide]:
        names = more
    value = found[pick(path, names if cfg.key is None else list(found), cfg.key, "key")]
    # MATLAB stores sparse matrices by columns.
    matrix: Any = value.astype(np.float64).tocsr() if hasattr(value, "toarray") else np.asarray(value)
    width = matrix.shape[1] if matrix.ndim == 2 else -1
    return Table(matrix, names_beside(cells, width) if cfg.recognise else None)


def fields_of(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a structure with their full names, and anything else as it is."""
    kinds = getattr(getattr(value, "dtype", None), "names", None)
    if not kinds or value.size != 1 or depth > DEEPEST:
        yield name, value
        return
    for field in kinds:
        yield from fields_of(f"{name}.{field}", value.ravel()[0][field], depth + 1)
