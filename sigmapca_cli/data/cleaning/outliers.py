"""Outliers that dominate a component: few rows with most of the variance of a principal component."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.copies import copies_in_words
from sigmapca_cli.data.moments.accumulate import Array
from sigmapca_cli.data.readers.columns import named_by_numbers
from sigmapca_cli.data.readers.table import override
from sigmapca_cli.system.row_shards import gathered, own

HALF = 0.5
MOST_COMPONENTS = 32
MOST_ROWS = 8
LEAST_ROWS = 50
LEAST_FEATURES = 4
WORK = 4e9  # multiplications: about a second
LEAST_SHARE = 1e-3  # of the total variance: a smaller component is not worth a warning
ROWS_AN_OUTLIER = 1000  # at most one row of so many is an outlier


@dataclass
class Owned:
    """A principal component, numbered from 1, with the few rows that have the share `share` of its variance."""

    component: int
    rows: list[int]
    share: float


def owned_components(
    project: Callable[[NDArray[np.float32]], Iterable[NDArray[Any]]],
    E: Array,
    values: Array,
    n: int,
    total: float,
) -> list[Owned]:
    """Return the leading components of which one row in 1,000 (at least one row) has more than half the variance.

    project: B (p, k) ↦ the blocks xB (m, k) of centred rows in order; E (p, k) and values (k,): their principal axes
    and variances (biased). The share of row i in component j is y_ij²/(n λ_j). Data of fewer than 50 rows, and
    components with less than 0.1 % of the `total` variance, are not tested.
    """
    most = min(MOST_ROWS, max(1, n // ROWS_AN_OUTLIER))
    k = int((values > LEAST_SHARE * total).sum())
    if n < LEAST_ROWS or not k:
        return []
    values = values[:k]
    shares, rows = np.zeros((most, k)), np.full((most, k), -1)
    start = own(n).start
    for y in project(E[:, :k].astype(np.float32)):
        y = np.square(y, dtype=np.float64)
        few = min(most, len(y))
        top = np.argpartition(y, len(y) - few, axis=0)[-few:]
        all_shares = np.concatenate([shares, np.take_along_axis(y, top, 0)])
        all_rows = np.concatenate([rows, top + start])
        best = np.argsort(-all_shares, axis=0)[:most]
        shares, rows = np.take_along_axis(all_shares, best, 0), np.take_along_axis(all_rows, best, 0)
        start += len(y)
    found = gathered((shares, rows))
    shares, rows = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    best = np.argsort(-shares, axis=0, kind="stable")[:most]
    shares, rows = np.take_along_axis(shares, best, 0), np.take_along_axis(rows, best, 0)
    cumulated = np.cumsum(shares, axis=0) / (n * values)
    owned = []
    for j in np.flatnonzero(cumulated[-1] > HALF):
        count = int((cumulated[:, j] > HALF).argmax()) + 1
        owned.append(Owned(int(j) + 1, sorted(rows[:count, j].tolist()), float(cumulated[count - 1, j])))
    return owned


def owners_of(source: Any, Y: NDArray[Any] | None = None) -> list[Owned]:
    """Return `owned_components` of a source; [] for patches, where no single row dominates, and if it takes long.

    Y (n, k): all rows on the leading k axes, where they are known; then no row is read, and these axes are looked at.
    """
    if source.patch_shape is not None or not source.has_rows or source.n < LEAST_ROWS:
        return []
    axes = source.leading_axes(1)
    values, E = axes.values, axes.vectors
    k = min(int((values > 1e-12 * max(values[0], 0.0)).sum()), MOST_COMPONENTS, source.n - 1, E.shape[1])
    if Y is not None:
        k = min(k, Y.shape[1])
        return owned_components(lambda B: [Y[:, : B.shape[1]]], E[:, :k], values[:k], source.n, axes.total)
    if k < 1 or float(source.n) * source.p * k > WORK:
        return []
    return owned_components(source.project, E[:, :k], values[:k], source.n, axes.total)


def in_words(owned: list[Owned], row_words: Callable[[int], str]) -> str:
    """Return a sentence on the first of these components, for a warning; rows are named as in their file."""
    first = owned[0]
    named = ", ".join(row_words(row) for row in first.rows)
    named += " (counted from 0)" if named.startswith("row") else ""
    others = f" ({len(owned) - 1} more components have such outliers)" if len(owned) > 1 else ""
    verb = "have" if len(first.rows) > 1 else "has"
    return (
        f"{named} {verb} {100 * first.share:.0f} % of the variance of principal component {first.component}{others}: "
        f"check {'them' if len(first.rows) > 1 else 'it'} for errors, or add data.clip=0.001"
    )


def scales_in_words(source: Any) -> str | None:
    """Return a sentence if the units of features that are not standardised decide the first components, else None.

    Standard deviations differ by a factor above 100, or one of four features or more has most of the variance. Curves
    over wavelengths or times, by which their columns are named, have one unit.
    """
    if named_by_numbers(source.names):
        return None
    if source.patch_shape is not None or source.whitening is not None or source.p < 2:
        return None
    if source.p > 4096 or np.ptp(source.scale) > 0:
        return None
    std = np.sqrt(np.maximum(source.covariance()[1].diagonal(), 0.0))
    varying = np.flatnonzero(std > 0)
    if len(varying) < 2:
        return None
    small, large = varying[std[varying].argmin()], varying[std[varying].argmax()]
    names = source.names or [f"feature {i}" for i in range(source.p)]
    share = std[large] ** 2 / (std**2).sum()
    if std[large] <= 100 * std[small]:
        if share <= HALF or len(varying) < LEAST_FEATURES:
            return None
        left_out = override("drop", [names[large] if source.names else int(large)])
        return (
            f"{names[large]} has {100 * share:.0f} % of the total variance, so it decides the first component: "
            f"data.standardise=feature gives every feature the same weight, {left_out} leaves it out"
        )
    return (
        f"the standard deviation of {names[large]} is {std[large] / std[small]:.0f} times that of {names[small]}, so "
        "the first components depend on the units: data.standardise=feature gives every feature the same weight"
    )


def warnings_about(source: Any) -> list[str]:
    """Return the warnings about the data before training; computed once per source."""
    if source.warnings is None:
        scales, owned = scales_in_words(source), owners_of(source)
        source.warnings = [
            *([scales] if scales else []),
            *([copies] if (copies := copies_in_words(source)) else []),
            *([in_words(owned, source.row_words)] if owned else []),
        ]
    return source.warnings


def warn_about(source: Any, log: logging.Logger) -> None:
    """Log the warnings about the data; for further runs on the same source only at level INFO."""
    level = logging.WARNING if source.warnings is None else logging.INFO
    for text in warnings_about(source):
        log.log(level, "%s", text)
