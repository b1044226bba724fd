"""Facts about each column of a table: whether names identify them, kind of numbers, location, scale, kurtosis."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_VALUES = 10  # a column with at most so many distinct values may hold classes
POWERS_AT_ONCE = 1 << 22
"""Entries whose fourth powers are held at once."""
RISING = "rising whole numbers"
EVEN = "rising by equal steps"
IN_TURNS = "whole numbers in turns"
GROUPS = "whole numbers of groups of rows"
LEAST_TURN, MOSTLY = 4, 0.9
"""Fewest whole numbers that follow each other in turns, such as quarters, and the share of rows at which they do."""


def identifying_names(names: Sequence[str] | None) -> list[str] | None:
    """Return the names if each identifies one column: all are different and none is empty. Return None otherwise.

    Columns without such names go by position: a name that occurs twice would stand for the wrong one of two columns.
    """
    if names is None or len(set(names)) < len(names) or not all(names):
        return None
    return list(names)


def named_by_numbers(names: Sequence[str] | None) -> bool:
    """Return whether the names of the columns are numbers, such as wavelengths."""
    try:
        return names is not None and bool(np.isfinite([float(name) for name in names]).all())
    except ValueError:
        return False


def excess_kurtosis(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return E[z⁴] − 3 of each column of x (n, p), z = (x − mean)/σ; 0 for a column without variance.

    Standardised first: fourth powers of small units would underflow. Column by column in blocks, so that the rows are
    not copied whole.
    """
    # Never a column alone, whose sums have other last bits.
    few = max(1, min(x.size // POWERS_AT_ONCE, x.shape[1] // 8))
    return np.concatenate([_excess_kurtosis(part) for part in np.array_split(x, few, axis=1)])


def _excess_kurtosis(x: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = x - x.mean(axis=0)
    sigma = centred.std(axis=0)
    varying = sigma > 0
    z = centred / np.where(varying, sigma, 1.0)
    return np.where(varying, np.mean(z**4, axis=0) - 3.0, 0.0)


def kind_of(values: NDArray[np.float64]) -> str:
    """Return the kind of a column: constant, whole numbers (with their number if they are few), or numbers."""
    if np.ptp(values) == 0:
        return "constant"
    if not (values == np.rint(values)).all():
        steps = np.diff(values)
        even = len(steps) > 1 and steps.min() > 0 and np.ptp(steps) <= 1e-3 * steps.mean()
        return EVEN if even else "numbers"
    if (np.diff(values) > 0).all():
        return RISING
    if numbers_groups(values):
        return GROUPS
    if counts_in_turns(values):
        return IN_TURNS
    few = len(np.unique(values[:1000])) <= FEW_VALUES and len(distinct := np.unique(values)) <= FEW_VALUES
    return f"{len(distinct)} whole numbers" if few and len(distinct) < len(values) / 4 else "whole numbers"


def numbers_groups(values: NDArray[np.float64]) -> bool:
    """Return whether a column numbers many groups of equally many rows, from 0 or 1 on, one below the other."""
    if values[0] not in (0, 1) or not np.isin(np.diff(values), (0, 1)).all():
        return False
    counts = np.bincount((values - values[0]).astype(np.int64))
    return len(counts) > FEW_VALUES and counts[0] > 1 and bool((counts == counts[0]).all())


def counts_in_turns(values: NDArray[np.float64]) -> bool:
    """Return whether a column counts the same whole numbers again and again, as weekdays, months and hours do.

    At most rows the number stays, or is the next one; after the largest comes the smallest. Some rows may be missing.
    """
    turn, steps = int(np.ptp(values)) + 1, np.diff(values)
    if not LEAST_TURN <= turn < len(values) / 4 or (steps < 0).sum() < 2:
        return False
    return len(np.unique(values)) == turn and bool((steps % turn <= 1).mean() >= MOSTLY)


def maybe_labels(columns: list[dict[str, Any]]) -> list[str]:
    """Return the columns with few distinct whole numbers, which may be classes, if most columns are other numbers."""
    few = [column["name"] for column in columns if column["kind"][0].isdigit()]
    others = sum(column["kind"] == "numbers" for column in columns)
    return few if few and others > len(columns) / 2 else []


def maybe_index(columns: list[dict[str, Any]]) -> list[str]:
    """Return the columns that increase from row to row, or in turns: they may number, date or time the rows."""
    return [column["name"] for column in columns if column["kind"] in (RISING, EVEN, IN_TURNS, GROUPS)]


def whose_rows(columns: list[dict[str, Any]]) -> str | None:
    """Return the column that numbers groups of rows, such as subjects or trials, if there is one alone."""
    found = [column["name"] for column in columns if column["kind"] == GROUPS]
    return found[0] if len(found) == 1 else None


def column_facts(source: Any, raw: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Return one dictionary per column, from rows (m, p) before standardisation."""
    names = source.names or [f"feature {i}" for i in range(source.p)]
    kurtosis, std = excess_kurtosis(raw), raw.std(axis=0)
    low, high = raw.min(axis=0), raw.max(axis=0)
    missing = np.zeros(source.p, np.int64) if source.missing is None else source.missing
    return [
        {
            "name": names[j],
            "unit": source.units.get(names[j], source.units.get("", "")),
            "kind": kind_of(raw[:, j]),
            "mean": float(raw[:, j].mean()),
            "std": float(std[j]),
            "min": float(low[j]),
            "max": float(high[j]),
            "kurtosis": float(kurtosis[j]),
            "missing": int(missing[j]),
        }
        for j in range(source.p)
    ]
