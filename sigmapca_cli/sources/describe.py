"""Description of a data file or folder: shapes, statistics, kurtosis, and a suitable a."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.quoting import shell_word
from sigmapca_cli.sources import build
from sigmapca_cli.sources.array_files import is_zarr
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.cifar import LAYOUTS
from sigmapca_cli.sources.columns import column_facts, excess_kurtosis, maybe_index, maybe_labels
from sigmapca_cli.sources.components import at_a_gap, by_broken_stick, by_share, count_of
from sigmapca_cli.sources.config import DataConfig, name_list, usual_standardise
from sigmapca_cli.sources.folder import SUFFIXES
from sigmapca_cli.sources.implicit import WIDE, Axes
from sigmapca_cli.sources.locate import existing
from sigmapca_cli.sources.owners import in_words, owners_of, scales_in_words
from sigmapca_cli.sources.prepared import is_prepared
from sigmapca_cli.sources.several import files_of, parts_of
from sigmapca_cli.sources.table import WordColumns, override

SAMPLE = 50_000  # rows for statistics that need a sample
SAMPLE_ENTRIES = 1 << 27  # and entries: 1 GB in float64
LEADING = 32  # components whose kurtosis is measured


def kind_of_path(path: str) -> str:
    """Return the kind of source that reads a path or a pattern of files, as `guess_kind`."""
    place = Path(path).expanduser()
    if not place.exists() and len(files_of(path)) > 0:
        return "array"
    return guess_kind(existing(path, "data"))


def guess_kind(path: Path) -> str:
    """Return the kind of source that reads a path, by names and first bytes."""
    if path.is_dir():
        return _guess_folder(path)
    if path.suffix.lower() in SUFFIXES:
        return "images"
    if path.suffix.lower() == ".wav":
        return "signals"
    for dataset, layout in LAYOUTS.items():
        if path.name in layout.places or path.name.removesuffix(".bin") in layout.names("all"):
            return dataset
    if "idx" in path.name and "ubyte" in path.name:
        return "mnist"
    return "prepared" if is_prepared(path) else "array"


def _guess_folder(folder: Path) -> str:
    names = {p.name for p in folder.iterdir()}
    for dataset, layout in LAYOUTS.items():
        members = set(layout.names("all"))
        if names & {*members, *(f"{m}.bin" for m in members), *layout.places}:
            return dataset
    if any("idx3-ubyte" in name for name in names):
        return "mnist"
    if any(name.lower().endswith(".wav") for name in names):
        return "signals"
    if any(p.suffix.lower() in SUFFIXES for p in folder.rglob("*")):
        return "images"
    if parts_of(folder) != [folder] or is_zarr(folder):
        return "array"
    raise InputError(
        f"{folder} holds no data of a known kind (images, WAV, CIFAR, MNIST, tables): check the path"
    )


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Return minimum, quartiles and maximum."""
    names = ("min", "25%", "median", "75%", "max")
    return dict(zip(names, (float(v) for v in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])), strict=True))


def advise(kurtosis: NDArray[np.float64], n: int) -> str:
    """Return words for a suitable a, from the kurtosis of components: above 1 for heavy tails, below 1 for light ones.

    The sample kurtosis of a Gaussian has standard error √(24/n): values within three of them do not count.
    """
    doubt = 3 * np.sqrt(24 / n)
    heavy, light = int((kurtosis > doubt).sum()), int((kurtosis < -doubt).sum())
    if heavy == light == 0:
        return "every component has the kurtosis of a Gaussian: components of equal variance cannot be identified"
    if heavy and light and min(heavy, light) > 0.2 * (heavy + light):
        return f"{heavy} components super-Gaussian, {light} sub-Gaussian: a=auto"
    if heavy > light:
        return f"{heavy} of {len(kurtosis)} components super-Gaussian: a above 1, such as a=4"
    return f"{light} of {len(kurtosis)} components sub-Gaussian: a below 1, such as a=0.8"


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
    x = source.rows(index).astype(np.float64)
    facts["kurtosis_features"] = quantiles(excess_kurtosis(x))
    if source.patch_shape is None and source.p <= WIDE:
        facts["columns"] = column_facts(source, source.raw_rows(index))
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
        facts["advice"] = advise(kurtosis, len(x))
        facts["components"] = choices_of_k(axes, source.n)
        facts["outliers"] = [in_words([owned], source.row_words) for owned in owners_of(source)]
        facts["scales"] = scales_in_words(source)
    else:
        facts["advice"] = "every feature is constant: there is nothing to learn"
    return facts


def choices_of_k(axes: Axes, n: int) -> dict[str, Any]:
    """Return the number of components by several rules, and the eigenvalues.

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
        found["mdl"] = count_of("mdl", values, n)
        if len(values) == p:
            found["mle"] = count_of("mle", values, n)
        found["broken_stick"] = by_broken_stick(np.maximum(values, 0.0))
    else:
        found["total"] = axes.total
    return {**found, "eigenvalues": [float(value) for value in values]}


def command(facts: dict[str, Any], better: dict[str, Any], path: str, options: dict[str, Any]) -> str | None:
    """Return the command that trains on these data with `options`; k and a are from `better`, the repaired data."""
    if "components" not in better:
        return None
    defaults = {"standardise": usual_standardise(options["name"]), "mix": not Path(path).is_dir()}
    words = [f"data={options['name']}", shell_word("data.path", path)]
    for key, value in options.items():
        if key != "name" and value not in (None, [], defaults.get(key)):
            words.append(override(key, value if isinstance(value, list) else [value]))
    a = next((word for word in ("a=auto", "a=4", "a=0.8") if word in better["advice"]), None)
    if facts.get("patch_shape") is not None:
        return f"sigmapca train {' '.join(words)} {a if a and a != 'a=auto' else 'a=4'}"
    k = better.get("rank", "auto")
    if "95 %" in better["components"] and "rank" in better and facts.get("sample_rate") is None:
        # k must not cut through directions of equal variance: chance would choose among them.
        eigenvalues = np.array(better["components"]["eigenvalues"])
        k = at_a_gap(eigenvalues, better["components"]["95 %"], facts["samples"])
    return f"sigmapca train {' '.join(words)} k={k} {f'{a} solver=newton' if a else 'model=pca_svd'}"


def describe(path: str | Path, **options: Any) -> dict[str, Any]:
    """Return facts about a file, a folder or a pattern of any known format; `options`: fields of the data group.

    Columns without numbers are left out and listed; missing values are counted and replaced by the mean. So every
    table has a description.
    """
    kind = options.pop("name", None) or kind_of_path(str(path))
    place = Path(path).expanduser()
    if kind == "mnist" and place.is_dir() and "split" not in options:
        options["split"] = "train" if any(p.name.startswith("train") for p in place.iterdir()) else "test"
    if kind == "signals":
        # Describe the channels as recorded: by default, training mixes a folder of sounds.
        options = {"mix": False, **options}
    source, left_out = lenient(DataConfig(name=kind, path=str(path), **options))
    facts = summary(source)
    if left_out:
        facts["left_out"] = left_out
        options["drop"] = [*(name_list("drop", options.get("drop")) or []), *left_out]
    options["name"] = kind
    options |= remedies(facts)
    better = facts
    if options.get("clip") or (options["name"] == "array" and facts.get("scales")):
        with silence_warnings():  # the same warnings were logged above
            better = summary(lenient(DataConfig(path=str(path), **options))[0])
        facts["components_then"] = better.get("components")
    facts["command"] = command(facts, better, str(path), options)
    return facts


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Disable the logger inside the block."""
    logger = logging.getLogger("sigmapca")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def remedies(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the data group that treat missing values, different scales and outliers."""
    options: dict[str, Any] = {}
    if facts.get("missing_values"):
        options["missing"] = "drop" if facts["missing_rows"] < 0.05 * facts["samples"] else "mean"
    if facts.get("scales"):
        options["standardise"] = "feature"
    if facts.get("outliers") and facts["kind"] == "array":
        options["clip"] = 0.001
    return options


def lenient(cfg: DataConfig) -> tuple[Source, dict[str | int, str]]:
    """Return the source of a table without its columns of words, and these columns with what they hold."""
    left_out: dict[str | int, str] = {}
    if cfg.name == "array" and cfg.missing == "refuse":
        cfg.missing = "mean"
    while True:
        try:
            return build(cfg), left_out
        except WordColumns as problem:
            if cfg.columns is not None or set(problem.names) <= set(left_out):
                raise
            left_out |= dict(zip(problem.names, problem.kinds, strict=True))
            cfg.drop = [*(cfg.drop or []), *problem.names]
