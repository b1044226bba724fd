"""The columns of a table, one by one: what kind of numbers, where they lie, how heavy their tails are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_VALUES = 10
RISING = "rising whole numbers"


def excess_kurtosis(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[(x − m)⁴]/σ⁴ − 3 of each column; 0 for constant ones."""
    centred = x - x.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    varying = variance > 0
    return np.where(varying, fourth / np.where(varying, variance, 1.0) ** 2 - 3.0, 0.0)


def kind_of(values: NDArray[np.float64]) -> str:
    """constant, whole numbers (with how many, where they are few), or numbers."""
    if np.ptp(values) == 0:
        return "constant"
    if not (values == np.rint(values)).all():
        return "numbers"
    if (np.diff(values) > 0).all():
        return RISING
    few = len(np.unique(values[:1000])) <= FEW_VALUES and len(distinct := np.unique(values)) <= FEW_VALUES
    return f"{len(distinct)} whole numbers" if few and len(distinct) < len(values) / 4 else "whole numbers"


def maybe_labels(columns: list[dict[str, Any]]) -> list[str]:
    """Columns of a few whole numbers among columns of other numbers: classes, perhaps."""
    few = [column["name"] for column in columns if column["kind"][0].isdigit()]
    others = sum(column["kind"] == "numbers" for column in columns)
    return few if few and others > len(columns) / 2 else []


def maybe_index(columns: list[dict[str, Any]]) -> list[str]:
    """Columns that rise from row to row: they may count or date the rows."""
    return [column["name"] for column in columns if column["kind"] == RISING]


def column_facts(source: Any, raw: NDArray[np.float64]) -> list[dict[str, Any]]:
    """One row a column, from rows (m, p) before standardisation: of at most 50,000 of them for large data."""
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
