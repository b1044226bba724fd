"""Facts about the rows of a source: shapes, moments, rank, kurtosis, columns, codes, outliers, and the task."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.codes import codes_in
from sigmapca_cli.data.cleaning.copies import copies_in_words
from sigmapca_cli.data.cleaning.outliers import in_words, owners_of, scales_in_words
from sigmapca_cli.data.describe.adequacy import adequacy
from sigmapca_cli.data.describe.task import beside_items, task_of
from sigmapca_cli.data.moments.covariance import ROUGH
from sigmapca_cli.data.moments.implicit import WIDE, Axes
from sigmapca_cli.data.n_components import (
    above_chance,
    by_broken_stick,
    by_share,
    chance_eigenvalues,
    count_of,
)
from sigmapca_cli.data.readers.columns import (
    column_facts,
    excess_kurtosis,
    maybe_index,
    maybe_labels,
    whose_rows,
)
from sigmapca_cli.data.source import Source

SAMPLE = 50_000  # rows for statistics that need a sample
SAMPLE_ENTRIES = 1 << 26  # and entries: 0.5 GB in float64
RAW_ENTRIES = 1 << 24  # of rows of very many columns that are looked at
LEADING = 32  # components whose kurtosis is measured


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Return minimum, quartiles and maximum."""
    names = ("min", "25%", "median", "75%", "max")
    return dict(zip(names, (float(v) for v in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])), strict=True))


def _sample(source: Source) -> NDArray[np.int64]:
    """Return the rows of a random sample, or all rows if they are few."""
    index, most = np.arange(source.n), min(SAMPLE, max(SAMPLE_ENTRIES // source.p, 2))
    if source.n > most:
        index = np.sort(np.random.default_rng(0).choice(source.n, most, replace=False))
    return index


def summary(source: Source) -> dict[str, Any]:
    """Return shapes, moments, rank, kurtosis, columns, outliers and the task, which is absent if all is constant.

    Kurtosis and column statistics are from a sample of 50,000 rows if there are more.
    """
    facts: dict[str, Any] = {
        "kind": source.name,
        "samples": source.n,
        "features": source.p,
        "patch_shape": source.patch_shape,
        "size_float32_bytes": source.n * source.p * 4,
        "mean": quantiles(source.mean),
        "scale": quantiles(source.scale),
        "constant_features": source.constant_features,
        "hash": source.hash,
        **source.facts,
    }
    if source.sample_rate is not None:
        facts["sample_rate"] = source.sample_rate
    copies = source.copies
    different = source.n if copies is None else copies.different
    if copies is not None:
        facts["different_rows"] = different
    index = _sample(source)
    x = source.take(index).astype(np.float64)
    facts["kurtosis_features"] = quantiles(excess_kurtosis(x))
    raw = None
    if source.patch_shape is None and source.p <= max(WIDE, RAW_ENTRIES // len(index)) and source.has_rows:
        raw = source.take(index, raw=True)
    if raw is not None and source.p <= WIDE:
        facts["columns"] = column_facts(source, raw)
        facts["codes"] = codes_in(raw)
        facts["labels"] = maybe_labels(facts["columns"]) if source.names else []
        rising = maybe_index(facts["columns"]) if source.n <= SAMPLE else []
        named = source.names is not None
        facts["subject"] = whose_rows(facts["columns"]) if named and rising else None
        rising = [name for name in rising if name != facts["subject"]]
        facts["rising"] = (
            rising if named else [j for j, c in enumerate(facts["columns"]) if c["name"] in rising]
        )
    source.axes_tolerance = ROUGH
    axes = source.leading_axes(LEADING)
    values, rank = axes.values, axes.rank
    leading = min(rank, LEADING)
    facts["total_variance"] = axes.total
    if axes.whole:
        facts["rank"] = rank
    if source.p > LEADING:
        facts["explained_by_32"] = float(values[:LEADING].sum() / axes.total) if rank else 0.0
    if leading:
        kurtosis = excess_kurtosis(x @ axes.up_to(leading))
        facts["kurtosis_components"] = quantiles(kurtosis)
        facts["task"] = task_of(source, raw)
        facts["beside_items"] = beside_items(source, raw)
        if copies is not None:
            x = x[copies.distinct(index)[0]]
        if facts["task"].name == "items":
            facts |= adequacy(x)
        facts["components"] = choices_of_k(axes, different, source.constant_features, x)
        facts["outliers"] = [in_words([owned], source.row_words) for owned in owners_of(source)]
        facts["scales"] = scales_in_words(source)
        facts["copies"] = copies_in_words(source)
    return facts


def choices_of_k(axes: Axes, n: int, constant: int, x: NDArray[np.float64]) -> dict[str, Any]:
    """Return the number of components by several rules, and the eigenvalues. `constant` of the features do not vary.

    x (m, p): a sample of the rows.

    Of many features only the leading eigenvalues may be known: the rules that need more are left out.
    """
    values, p = axes.values, len(axes.vectors)
    shares = {f"{100 * share:g} %": share for share in (0.9, 0.95, 0.99)}
    reached = values.sum() / axes.total
    found: dict[str, Any] = {
        name: by_share(values, share if axes.whole else share / reached)
        for name, share in shares.items()
        if axes.whole or share < reached
    }
    if axes.whole:
        found["mdl"] = count_of("mdl", values, n, constant)
        if len(values) == p:
            found["mle"] = count_of("mle", values, n)
        if (chance := chance_eigenvalues(x)) is not None:
            found["parallel"] = above_chance(values, chance)
            found["eigenvalues_by_chance"] = [float(value) for value in chance]
        found["broken_stick"] = by_broken_stick(np.maximum(values, 0.0))
    else:
        found["total"] = axes.total
    return {**found, "eigenvalues": [float(value) for value in values]}
