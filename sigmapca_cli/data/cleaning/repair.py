"""Treatment of missing values (data.missing) and outliers (data.clip) of a matrix, before all other computations."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.on_disk.progress import paced
from sigmapca_cli.data.on_disk.row_file import RowFile
from sigmapca_cli.data.readers.table import WordColumns, override, shown_name
from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.system.errors import InputError

VALUES_AT_ONCE = 1 << 22  # values
QUANTILE_ROWS = 100_000
Matrix = NDArray | RowFile


@dataclass
class Repaired:
    """The repaired matrix, and what was changed."""

    matrix: Any
    kept: NDArray[np.int64] | None = None  # rows of the file that remain; None: all
    facts: dict[str, int | float | str] = field(default_factory=dict)  # for the run's attributes
    incomplete: NDArray[np.bool_] | None = None  # rows in which missing values were filled
    by_column: NDArray[np.int64] | None = None  # (p,) numbers of missing values; None: there are none
    bounds: NDArray[np.float64] | None = None  # (2, p) least and largest value of each column after clipping


def repaired(
    matrix: Matrix, missing: str, clip: float | None, where: object, names: Any = None, fill: Any = None
) -> Repaired:
    """Return the rows (n, p) without missing values, then clipped. NaN is missing; infinity is refused elsewhere.

    `fill` (p,): values to use instead of the means of the columns.
    """
    found = Repaired(matrix)
    if missing != "refuse" and matrix.dtype.kind == "f":
        _without_missing(found, missing, where, names, fill)
    if clip:
        _clipped(found, clip, where)
    return found


def blocks(matrix: Matrix) -> Iterator[tuple[int, NDArray]]:
    """Yield the whole matrix as (number of the first row, rows)."""
    step = max(1, VALUES_AT_ONCE // matrix.shape[1])
    for start in range(0, len(matrix), step):
        stop = min(start + step, len(matrix))
        yield start, matrix[start:stop] if isinstance(matrix, np.ndarray) else matrix.block(start, stop)


def rewritten(matrix: Matrix, rows: int, function: Callable[[int, NDArray], NDArray]) -> Matrix:
    """Return `function` applied to each block (first row, rows); in memory or in a file, like the matrix."""
    if isinstance(matrix, np.ndarray):
        return np.concatenate([function(start, block) for start, block in blocks(matrix)])
    out, place = RowFile.scratch((rows, matrix.shape[1]), np.dtype(np.float64)), 0
    for start, block in blocks(matrix):
        changed = function(start, block)
        if len(changed):
            out.write(place, changed)
        place += len(changed)
    return out


def _without_missing(found: Repaired, missing: str, where: object, names: Any, fill: Any) -> None:
    matrix = found.matrix
    count, total, present, whole = 0, np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], np.int64), []
    step = max(1, VALUES_AT_ONCE // matrix.shape[1])
    words = f"{where}: {len(matrix)} rows: about {{time}} left of the search for missing values"
    for _, block in paced(blocks(matrix), repeat(step), len(matrix), words):
        bad = np.isnan(block)
        any_bad = bool(bad.any())
        count += int(bad.sum()) if any_bad else 0
        total += (np.where(bad, 0.0, block) if any_bad else block).sum(axis=0, dtype=np.float64)
        present += (~bad).sum(axis=0)
        whole.append(~bad.any(axis=1))
    if not count:
        return
    complete = np.concatenate(whole)
    rows = int((~complete).sum())
    if fill is None and len(empty := np.flatnonzero(present == 0)):
        called: list[str | int] = [int(i) if names is None else names[i] for i in empty]
        raise WordColumns(
            f"{where}: column {shown_name(called[0])} has no value at all: "
            f"leave it out with {override('drop', called)}",
            called,
            ["empty"] * len(called),
        )
    found.by_column = len(matrix) - present
    found.facts = {"missing_values": count, "missing_rows": rows, "missing": missing}
    text = f"{where}: {count} missing value{'s' * (count > 1)} in {rows} of {len(matrix)} rows"
    if missing == "drop":
        if rows > len(matrix) - 2:
            raise InputError(
                f"{text}: data.missing=drop would leave {len(matrix) - rows} rows; use data.missing=mean"
            )
        found.kept = np.flatnonzero(complete)
        found.matrix = rewritten(matrix, len(found.kept), lambda i, b: b[complete[i : i + len(b)]])
        text += "; those rows are left out"
    elif missing == "ppca":
        text += _by_ppca(found, where)
        found.incomplete = ~complete
    else:
        means = total / present if fill is None else np.asarray(fill)
        found.incomplete = ~complete
        found.matrix = rewritten(
            matrix, len(matrix), lambda i, b: np.where(np.isnan(b), means.astype(b.dtype), b)
        )
        text += "; each is replaced by the mean of its column"
    if fill is None:  # else the caller reports it
        logging.getLogger("sigmapca").warning("%s", text)


def _by_ppca(found: Repaired, where: object) -> str:
    """Fill by expectation under probabilistic PCA; return the words for the log."""
    from sigmapca_cli.data.cleaning.imputation import by_ppca

    if not isinstance(found.matrix, np.ndarray):
        raise InputError(
            f"{where}: the data are too large for data.missing=ppca, which holds them in memory; use mean or drop"
        )
    if np.isinf(found.matrix).any():
        return ""  # refused later, with the place of the value
    found.matrix, k, iterations = by_ppca(found.matrix)
    found.facts |= {"missing_components": k, "missing_iterations": iterations}
    return f"; each is replaced by its expectation under probabilistic PCA of {k} components"


def _clipped(found: Repaired, clip: float, where: object) -> None:
    """Clip each column to its quantiles `clip` and 1 − clip (winsorise); of large data, those of 100,000 rows."""
    matrix = found.matrix
    sample = (
        matrix if isinstance(matrix, np.ndarray) else matrix.gather(evenly_spaced(len(matrix), QUANTILE_ROWS))
    )
    if not np.isfinite(sample).all():
        return  # refused later, with the place of the value
    bounds = np.quantile(sample, [clip, 1 - clip], axis=0)
    changed = 0

    def within(_: int, block: NDArray) -> NDArray:
        nonlocal changed
        out = np.clip(block.astype(np.float64), *bounds)
        changed += int((out != block).sum())
        return out

    found.matrix = rewritten(matrix, len(matrix), within)
    found.bounds = bounds
    found.facts |= {"clip": clip, "clipped_values": changed}
    logging.getLogger("sigmapca").info(
        "%s: %d values clipped to the quantiles of their column", where, changed
    )
