"""Runs grouped by their settings: repetitions of one setting, and the two halves of the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.evaluation.compare import REPEATED
from sigmapca_cli.figures.titles import knob
from sigmapca_cli.report.charts import Series, colours, up_to_one
from sigmapca_cli.report.gather import Report, last_loss, plain, scalar
from sigmapca_cli.report.page import Cell, Picture, Pictures, Table, number

HALF = "data.half"


def groups_of(report: Report, without: Sequence[str] = REPEATED) -> dict[tuple[str, ...], list[int]]:
    """Return the runs by their settings other than `without`: {one value per setting: indices of runs}."""
    names = setting_names(report, without)
    groups: dict[tuple[str, ...], list[int]] = {}
    for i in range(len(report.runs)):
        groups.setdefault(tuple(report.settings[name][i] for name in names), []).append(i)
    return groups


def setting_names(report: Report, without: Sequence[str] = REPEATED) -> list[str]:
    """Return the settings that distinguish groups: those that differ, without repetitions and without followers."""
    from sigmapca_cli.report.gather import without_followers

    named = {name: row for name, row in report.settings.items() if name not in without}
    return list(without_followers(named))


def by_setting(report: Report) -> list[Any]:
    """Return a table with one row for each setting that several runs repeat; [] if none does."""
    groups, names = groups_of(report), setting_names(report)
    if len(groups) < 2 or max(map(len, groups.values())) < 2:
        return []
    header = [*map(plain, names), "runs", "loss", "spread of the loss", "MCC", "least MCC", "agreement"]
    rows = []
    for values, members in groups.items():
        losses = [last_loss(report.runs[i]) for i in members]
        scores = [scalar(report.runs[i], "mcc") for i in members]
        agreed = mean_agreement(report, members)
        tint = None if math.isnan(agreed) else max(agreed, 0.0)
        rows.append(
            [
                *(Cell(value, number(value)) for value in values),
                len(members),
                *(mean(losses), spread(losses), mean(scores), least(scores)),
                Cell(f"{agreed:.4f}", agreed, tint=tint) if tint is not None else math.nan,
            ]
        )
    kept = [j for j, _ in enumerate(header) if not all(Cell.of(row[j]).text == "–" for row in rows)]
    caption = (
        "Means over the runs of each setting, which differ by seed or half only. Spread: standard deviation. "
        "Agreement: mean matched |cos| between the filters of two of its runs."
    )
    return [Table(caption, [header[j] for j in kept], [[row[j] for j in kept] for row in rows])]


def mean_agreement(report: Report, members: Sequence[int]) -> float:
    """Return the mean matched |cos| over all pairs of runs of one group; nan without a pair of equal features."""
    having = [report.filters[i] for i in members]
    filters = [W for W in having if W is not None]
    pairs = [agreement(A, B).mean for A, B in itertools.combinations(filters, 2) if len(A) == len(B)]
    return mean(pairs)


def halves(report: Report) -> list[Any]:
    """Return how far solutions from the even and the odd rows agree, by setting; [] if no setting has both."""
    if HALF not in report.settings:
        return []
    found = []
    for members in groups_of(report, (HALF, "recipe")).values():
        by_half = {report.settings[HALF][i]: i for i in members}
        if not {"even", "odd"} <= set(by_half):
            continue
        even, odd = by_half["even"], by_half["odd"]
        A, B = report.filters[even], report.filters[odd]
        if A is None or B is None or len(A) != len(B):
            continue
        both = agreement(A, B)
        found.append((even, both.mean, cosine_of_spans(A, B), both.chance))
    if not found:
        return []
    names = setting_names(report, (HALF, "recipe"))
    rows = [
        [
            *(Cell(report.settings[name][i], number(report.settings[name][i])) for name in names),
            *(Cell(f"{value:.4f}", value) for value in numbers),
        ]
        for i, *numbers in found
    ]
    header = [*map(plain, names), "agreement", "span", "chance"]
    caption = (
        "Mean matched |cos| between filters learned from the even and from the odd rows or images. Span: the mean "
        "cosine between the two subspaces, which is about the largest agreement possible. Chance: random filters."
    )
    return [Table(caption, header, rows), *over_a(report, found)]


def over_a(report: Report, found: Sequence[tuple[int, float, float, float]]) -> list[Any]:
    """Return a chart of the agreement of halves over a, if two or more values of a have one."""
    points: dict[float, list[tuple[float, float]]] = {}
    for i, agreed, span, _ in found:
        value = number(str(report.runs[i].attrs.get("a", "")))
        if value is not None and value > 0 and knob(report.runs[i]).startswith("a"):
            points.setdefault(value, []).append((agreed, span))
    if len(points) < 2:
        return []
    scales = sorted(points)
    means, spans = (np.array([mean([pair[j] for pair in points[a]]) for a in scales]) for j in (0, 1))
    line = Series(np.array(scales), means, colours(1)[0], "agreement of halves", None, True)
    rings = Series(np.array(scales), np.minimum(spans, 1.0), "", "span")
    chart = up_to_one(
        [line], "a, scale of the nonlinearity (log scale)", "agreement of halves, matched |cos|", rings, True
    )
    return [Pictures([Picture(chart, "", "Rings: span of the two subspaces.", svg=True)])] if chart else []


def cosine_of_spans(A: np.ndarray, B: np.ndarray) -> float:
    """Return the mean cosine of the principal angles between the column spaces of A and B (p, k)."""
    P, Q = (np.linalg.qr(np.asarray(W, dtype=np.float64))[0] for W in (A, B))
    return float(np.linalg.svd(P.T @ Q, compute_uv=False).mean())


def mean(values: Sequence[float]) -> float:
    """Return the mean of the finite values, nan if there are none."""
    finite = [v for v in values if math.isfinite(v)]
    return float(np.mean(finite)) if finite else math.nan


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation (n − 1) of the finite values, nan for fewer than two."""
    finite = [v for v in values if math.isfinite(v)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else math.nan


def least(values: Sequence[float]) -> float:
    """Return the least finite value, nan if there is none."""
    return min((v for v in values if math.isfinite(v)), default=math.nan)
