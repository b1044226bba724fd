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
SEVERAL = 4
"""Codes on one side, such as 77, 88, 98 and 99, for the different reasons why an answer is missing."""
LEAST_ROWS = 2
"""Rows that must have the value: a single one may be an error of another kind."""


def codes_in(x: NDArray[Any]) -> list[float]:
    """Return values of a table (n, p) that are probably codes of missing values, increasing.

    Codes are the least or the largest values of a column, up to SEVERAL on a side, as 88 and 99. Each occurs in two
    rows or more, and all lie farther from the nearest other value than the others extend, which are most rows. A
    code is found so in two columns, or is one that programs write. NaN is no value.
    """
    found: Counter[float] = Counter()
    for column in np.asarray(x, np.float64).T:
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        while few := outside(values, counts) or -outside(-values[::-1], counts[::-1]):
            codes = values[-few:] if few > 0 else values[:-few]
            found.update(codes.tolist())
            kept = slice(0, -few) if few > 0 else slice(-few, None)
            values, counts = values[kept], counts[kept]
    return sorted(code for code, columns in found.items() if columns > 1 or code in USUAL)


def outside(values: NDArray[np.float64], counts: NDArray[np.int64]) -> int:
    """Return how many of the largest values lie far from the others, 0 to SEVERAL; they increase, with counts."""
    for few in range(1, min(SEVERAL, len(values) - 2) + 1):
        far = values[-few] - values[-few - 1] > values[-few - 1] - values[0]
        rare = few == 1 or counts[-few:].sum() < counts[:-few].sum()
        if far and rare and counts[-few:].min() >= LEAST_ROWS:
            return few
    return 0


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
