"""Components of a run with a column of its file beside: what colours a scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.describe.describe import silence_warnings
from sigmapca_cli.data.matrix.concatenated import files_of
from sigmapca_cli.data.readers.row_marks import column
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.solution.new_rows import new_source
from sigmapca_cli.solution.solution import Solution
from sigmapca_cli.system.errors import InputError


def components_beside(run: Any, name: str) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the components (n, k) of all rows of the run's file, and the values (n,) of one of its columns.

    The column need not be a feature: it may hold words, or be left out by data.drop. A row with missing values has
    components of nan. Raise InputError where the run's data are no table, or have no such column.
    """
    cfg = data_of(run)
    if cfg.name != "array" or cfg.path is None or cfg.transpose:
        raise InputError(f"--colour {name}: the rows of this run are from no table (data={cfg.name})")
    with silence_warnings():  # what there is to say of the file was said
        source = new_source(run, cfg.path, aligned=True)
    values = [value for path in files_of(cfg.path) for value in column(path, cfg, name)]
    if len(values) != source.n:
        raise InputError(f"--colour {name}: it has {len(values)} values for {source.n} rows")
    return np.concatenate(list(Solution.of(run).stream(source))), values
