"""Codes of missing values, such as 99 in answers from 1 to 5 and -9999 among measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.repair import rewritten
from sigmapca_cli.data.on_disk.row_file import RowFile

USUAL = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, -1e20, 1e20)
"""Codes that programs write: one column with such a value is enough."""
LEAST = 2
"""Rows that must have the value: a single one may be an error of another kind."""


def codes_in(x: NDArray[Any]) -> list[float]:
    """Return values of a table (n, p) that are probably codes of missing values, increasing.

    A code is the least or the largest value of a column, occurs in two rows or more, lies farther from the nearest
    other value than these extend, and is found so in two columns or is one that programs write. NaN is no value.
    """
    found: Counter[float] = Counter()
    for column in np.asarray(x, np.float64).T:
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        while len(values) > 2:
            if values[-1] - values[-2] > values[-2] - values[0] and counts[-1] >= LEAST:
                code, values, counts = values[-1], values[:-1], counts[:-1]
            elif values[1] - values[0] > values[-1] - values[1] and counts[0] >= LEAST:
                code, values, counts = values[0], values[1:], counts[1:]
            else:
                break
            found[float(code)] += 1
    return sorted(code for code, columns in found.items() if columns > 1 or code in USUAL)


def without_codes(data: Any, codes: Sequence[float]) -> tuple[Any, int]:
    """Return rows (n, p), in memory or in a file, with NaN in the place of codes, and how many there were."""
    count = 0

    def decoded(start: int, block: NDArray[Any]) -> NDArray[Any]:
        nonlocal count
        bad = np.isin(block, np.asarray(codes, np.float64).astype(block.dtype))
        count += int(bad.sum())
        out = block.astype(np.float64 if block.dtype.kind in "iu" else block.dtype)
        out[bad] = np.nan
        return out

    matrix = data if isinstance(data, np.ndarray | RowFile) else np.asarray(data)
    return rewritten(matrix, len(matrix), decoded), count
