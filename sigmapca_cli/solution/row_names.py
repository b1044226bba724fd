"""What rows are called in a table: the columns that training left out, such as ids, dates and classes."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from sigmapca_cli.data.config import name_list
from sigmapca_cli.data.describe.recognise import kind_of_path
from sigmapca_cli.data.matrix.concatenated import files_of
from sigmapca_cli.data.readers.row_marks import column
from sigmapca_cli.data.stored import data_of
from sigmapca_cli.system.errors import InputError

MOST = 20
"""More columns that were left out are no names of rows."""


def row_names(run: Any, path: str, n: int) -> dict[str, list[str]]:
    """Return the columns of a table (n rows) that the run left out by name, as text; those that the file has."""
    cfg = data_of(run)
    dropped = [name for name in name_list("drop", cfg.drop) or [] if isinstance(name, str)]
    if not run.names or cfg.transpose or len(dropped) > MOST or kind_of_path(path) != "array":
        return {}
    read, found = replace(cfg, name="array", path=path, columns=None), {}
    for name in dropped:
        with contextlib.suppress(InputError):
            values = [str(value) for file in files_of(path) for value in column(file, read, name)]
            if len(values) == n:
                found[name] = values
    return found
