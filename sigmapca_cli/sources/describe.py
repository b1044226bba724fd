"""What a data file or folder holds: shapes, statistics, kurtosis, and which a suits it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources import build
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.cifar import LAYOUTS
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.folder import SUFFIXES
from sigmapca_cli.sources.locate import existing
from sigmapca_cli.sources.prepared import is_prepared
from sigmapca_cli.sources.statistics import rank_of

SAMPLE = 50_000
# Larger covariances take minutes: only feature statistics are given then.
WIDEST = 2048


def guess_kind(path: Path) -> str:
    """The kind of source that reads a path, by names and first bytes."""
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
    raise InputError(f"{folder} holds no data that is known (images, WAV, CIFAR, MNIST): check the path")


def excess_kurtosis(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[(x − m)⁴]/σ⁴ − 3 of each column; 0 for constant ones."""
    centred = x - x.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    varying = variance > 0
    return np.where(varying, fourth / np.where(varying, variance, 1.0) ** 2 - 3.0, 0.0)


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Least, quartiles and greatest."""
    names = ("min", "25%", "median", "75%", "max")
    return dict(zip(names, (float(v) for v in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])), strict=True))


def advise(kurtosis: NDArray[np.float64], n: int) -> str:
    """Which a suits components of this kurtosis: above 1 for heavy tails, below 1 for light ones.

    A Gaussian's sample kurtosis has standard error √(24/n): values within three of those say nothing.
    """
    doubt = 3 * np.sqrt(24 / n)
    heavy, light = int((kurtosis > doubt).sum()), int((kurtosis < -doubt).sum())
    if heavy == light == 0:
        return "no component differs from a Gaussian: components of equal variance cannot be told apart"
    if heavy and light and min(heavy, light) > 0.2 * (heavy + light):
        return f"{heavy} components super-Gaussian, {light} sub-Gaussian: a=auto"
    if heavy > light:
        return f"{heavy} of {len(kurtosis)} components super-Gaussian: a above 1, such as a=4"
    return f"{light} of {len(kurtosis)} components sub-Gaussian: a below 1, such as a=0.8"


def _sample(source: Source) -> NDArray[np.float64]:
    index = np.arange(source.n)
    if source.n > SAMPLE:
        index = np.sort(np.random.default_rng(0).choice(source.n, SAMPLE, replace=False))
    return source.rows(index).astype(np.float64)


def summary(source: Source) -> dict[str, Any]:
    """Shapes, moments, rank, kurtosis and advice for a source; kurtosis on at most 50,000 rows."""
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
    }
    if source.sample_rate is not None:
        facts["sample_rate"] = source.sample_rate
    x = _sample(source)
    facts["kurtosis_features"] = quantiles(excess_kurtosis(x))
    if source.p > WIDEST:
        facts["advice"] = advise(excess_kurtosis(x), len(x))
        return facts
    values, E = source.principal_axes()
    rank = rank_of(values)
    leading = min(rank, 32)
    facts["rank"], facts["total_variance"] = rank, float(values.sum())
    if len(values) > 32:
        facts["explained_by_32"] = float(values[:32].sum() / values.sum()) if rank else 0.0
    if leading:
        kurtosis = excess_kurtosis(x @ E[:, :leading])
        facts["kurtosis_components"] = quantiles(kurtosis)
        facts["advice"] = advise(kurtosis, len(x))
    else:
        facts["advice"] = "every feature is constant: there is nothing to learn"
    return facts


def describe(path: str | Path, **options: Any) -> dict[str, Any]:
    """Facts about a file or folder of any known format; `options` are fields of the data group."""
    place = existing(str(path), "data")
    kind = options.pop("name", None) or guess_kind(place)
    if kind == "mnist" and place.is_dir() and "split" not in options:
        options["split"] = "train" if any(p.name.startswith("train") for p in place.iterdir()) else "test"
    if kind == "signals":
        options = {"standardise": "none", "mix": False, **options}
    return summary(build(DataConfig(name=kind, path=str(place), **options)))
