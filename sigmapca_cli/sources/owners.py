"""Rows that own a component: a few outliers that hold most of the variance of a principal component."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.sources.statistics import Array

HALF = 0.5
MOST_COMPONENTS = 32
MOST_ROWS = 8
LEAST_ROWS = 50
WORK = 4e9  # multiplications: about a second
LEAST_SHARE = 1e-3  # of the total variance: a smaller component is not worth a warning
FEW = 1000  # at most one row of so many is an outlier


@dataclass
class Owned:
    """A principal component, counted from 1, with the few rows that hold a share of its variance."""

    component: int
    rows: list[int]
    share: float


def owned_components(
    blocks: Iterable[NDArray[Any]], E: Array, values: Array, n: int, total: float
) -> list[Owned]:
    """The leading components of which at most one row in 1,000 (at least one row) holds more than half the variance.

    blocks: centred rows (m, p) in order; E (p, k) and values (k,) their principal axes and variances (biased). The
    share of row i in component j is y_ij²/(n λ_j). Fewer than 50 rows are not judged, nor components of less than
    0.1 % of the `total` variance.
    """
    most = min(MOST_ROWS, max(1, n // FEW))
    k = int((values > LEAST_SHARE * total).sum())
    if n < LEAST_ROWS or not k:
        return []
    values = values[:k]
    shares, rows = np.zeros((most, k)), np.full((most, k), -1)
    start = 0
    axes = E[:, :k].astype(np.float32)
    for x in blocks:
        y = np.square(np.asarray(x, np.float32) @ axes, dtype=np.float64)
        few = min(most, len(y))
        top = np.argpartition(y, len(y) - few, axis=0)[-few:]
        all_shares = np.concatenate([shares, np.take_along_axis(y, top, 0)])
        all_rows = np.concatenate([rows, top + start])
        best = np.argsort(-all_shares, axis=0)[:most]
        shares, rows = np.take_along_axis(all_shares, best, 0), np.take_along_axis(all_rows, best, 0)
        start += len(y)
    cumulated = np.cumsum(shares, axis=0) / (n * values)
    found = []
    for j in np.flatnonzero(cumulated[-1] > HALF):
        count = int((cumulated[:, j] > HALF).argmax()) + 1
        found.append(Owned(int(j) + 1, sorted(rows[:count, j].tolist()), float(cumulated[count - 1, j])))
    return found


def owners_of(source: Any) -> list[Owned]:
    """The same of a source; nothing where it is patches, which no single row can rule, or where it would take long."""
    if source.patch_shape is not None or source.n < LEAST_ROWS:
        return []
    values, E = source.principal_axes()
    k = min(int((values > 1e-12 * max(values[0], 0.0)).sum()), MOST_COMPONENTS, source.n - 1)
    if k < 1 or float(source.n) * source.p * k > WORK:
        return []
    return owned_components(source.blocks(), E[:, :k], values[:k], source.n, float(values.sum()))


def in_words(owned: list[Owned], row_words: Callable[[int], str]) -> str:
    """One sentence about the worst, for a warning; rows as their file counts them."""
    first = owned[0]
    named = ", ".join(row_words(row) for row in first.rows)
    named += " (counted from 0)" if named.startswith("row") else ""
    others = f" (and {len(owned) - 1} more components likewise)" if len(owned) > 1 else ""
    verb = "hold" if len(first.rows) > 1 else "holds"
    return (
        f"{named} {verb} {100 * first.share:.0f} % of the variance of principal component {first.component}{others}: "
        "outliers? Look at them, or add data.clip=0.001"
    )


def scales_in_words(source: Any) -> str | None:
    """A sentence where features that are not standardised differ in std by more than 100, else None."""
    if source.patch_shape is not None or source.whitening is not None or source.p < 2:
        return None
    if source.p > 4096 or np.ptp(source.scale) > 0:
        return None
    std = np.sqrt(np.maximum(np.diag(source.covariance()[1]), 0.0))
    varying = np.flatnonzero(std > 0)
    if len(varying) < 2:
        return None
    small, large = varying[std[varying].argmin()], varying[std[varying].argmax()]
    if std[large] <= 100 * std[small]:
        return None
    names = source.names or [f"feature {i}" for i in range(source.p)]
    return (
        f"{names[large]} varies {std[large] / std[small]:.0f} times as much as {names[small]}, so the first components "
        "follow the units: data.standardise=feature gives every feature the same weight"
    )


def warnings_about(source: Any) -> list[str]:
    """What a person should know of the data before training; worked out once for each source."""
    if source.warnings is None:
        scales, owned = scales_in_words(source), owners_of(source)
        source.warnings = [
            *([scales] if scales else []),
            *([in_words(owned, source.row_words)] if owned else []),
        ]
    return source.warnings


def warn_about(source: Any, log: logging.Logger) -> None:
    """Log it: as a warning the first time, and for further runs on the same data only in their own logs."""
    level = logging.WARNING if source.warnings is None else logging.INFO
    for text in warnings_about(source):
        log.log(level, "%s", text)
