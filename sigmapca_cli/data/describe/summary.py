"""Facts about the rows of a source: shapes, moments, rank, kurtosis, columns, outliers, and a suitable a."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.cleaning.outliers import in_words, owners_of, scales_in_words
from sigmapca_cli.data.moments.implicit import WIDE, Axes
from sigmapca_cli.data.n_components import by_broken_stick, by_share, count_of
from sigmapca_cli.data.readers.columns import column_facts, excess_kurtosis, maybe_index, maybe_labels
from sigmapca_cli.data.source import Source

SAMPLE = 50_000  # rows for statistics that need a sample
SAMPLE_ENTRIES = 1 << 27  # and entries: 1 GB in float64
LEADING = 32  # components whose kurtosis is measured


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Return minimum, quartiles and maximum."""
    names = ("min", "25%", "median", "75%", "max")
    return dict(zip(names, (float(v) for v in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])), strict=True))


@dataclass(frozen=True)
class Advice:
    """A suitable a, None where linear PCA is all there is, and the words that say why."""

    a: float | str | None
    text: str


def advise(kurtosis: NDArray[np.float64], n: int) -> Advice:
    """Return a suitable a, from the kurtosis of components: above 1 for heavy tails, below 1 for light ones.

    The sample kurtosis of a Gaussian has standard error √(24/n): values within three of them do not count.
    """
    doubt = 3 * np.sqrt(24 / n)
    heavy, light = int((kurtosis > doubt).sum()), int((kurtosis < -doubt).sum())
    if heavy == light == 0:
        return Advice(
            None,
            "every component has the kurtosis of a Gaussian: no a tells components of equal variance apart, and "
            "solver=independence may, where they are skewed",
        )
    if heavy and light and min(heavy, light) > 0.2 * (heavy + light):
        return Advice("auto", f"{heavy} components super-Gaussian, {light} sub-Gaussian: a=auto")
    if heavy > light:
        return Advice(4, f"{heavy} of {len(kurtosis)} components super-Gaussian: a above 1, such as a=4")
    return Advice(0.8, f"{light} of {len(kurtosis)} components sub-Gaussian: a below 1, such as a=0.8")


def _sample(source: Source) -> NDArray[np.int64]:
    """Return the rows of a random sample, or all rows if they are few."""
    index, most = np.arange(source.n), min(SAMPLE, max(SAMPLE_ENTRIES // source.p, 2))
    if source.n > most:
        index = np.sort(np.random.default_rng(0).choice(source.n, most, replace=False))
    return index


def summary(source: Source) -> dict[str, Any]:
    """Return shapes, moments, rank, kurtosis, columns, outliers and advice.

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
    index = _sample(source)
    x = source.take(index).astype(np.float64)
    facts["kurtosis_features"] = quantiles(excess_kurtosis(x))
    if source.patch_shape is None and source.p <= WIDE:
        facts["columns"] = column_facts(source, source.take(index, raw=True))
        facts["labels"] = maybe_labels(facts["columns"]) if source.names else []
        facts["rising"] = maybe_index(facts["columns"]) if source.n <= SAMPLE else []
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
        advice = advise(kurtosis, len(x))
        facts["advice"], facts["a"] = advice.text, advice.a
        facts["components"] = choices_of_k(axes, source.n, source.constant_features)
        facts["outliers"] = [in_words([owned], source.row_words) for owned in owners_of(source)]
        facts["scales"] = scales_in_words(source)
    else:
        facts["advice"], facts["a"] = "every feature is constant: there is nothing to learn", None
    return facts


def choices_of_k(axes: Axes, n: int, constant: int) -> dict[str, Any]:
    """Return the number of components by several rules, and the eigenvalues. `constant` of the features do not vary.

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
        found["broken_stick"] = by_broken_stick(np.maximum(values, 0.0))
    else:
        found["total"] = axes.total
    return {**found, "eigenvalues": [float(value) for value in values]}
