"""Words for the place of a value or of a row in the file that it came from."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.readers.table import Table

Index = NDArray[np.int64]


def in_array(row: int, column: int) -> str:
    """Return words for the place of a value in an array."""
    return f"at row {row}, column {column}, counted from 0"


def in_table(table: Table, kept: Index | None) -> Callable[[int, int], str] | None:
    """Return a function (row, column) to words for the place of a value in a table; None without names and lines."""
    if table.names is None and table.line_of is None:
        return None

    def place(row: int, column: int) -> str:
        row = row if kept is None else int(kept[row])
        name = f"column {column + 1}" if table.names is None else f"column {table.names[column]!r}"
        line = f"row {row}, counted from 0" if table.line_of is None else f"line {table.line_of(row)}"
        return f"on {line}, in {name}" if table.line_of is not None else f"in {name}, {line}"

    return place


def row_words(table: Table, kept: Index | None, part: slice) -> Callable[[int], str]:
    """Return a function from a row of the source to its name in the file, such as "line 7"."""
    first, step = part.start or 0, part.step or 1

    def words(row: int) -> str:
        row = first + row * step
        row = row if kept is None else int(kept[row])
        return f"row {row}" if table.line_of is None else f"line {table.line_of(row)}"

    return words
