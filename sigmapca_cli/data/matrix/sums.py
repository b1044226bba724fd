"""data=moments: count, mean and covariance of rows that are not here, as `sigmapca partial` wrote them for each part.

Layout of a file (`format = "sigmapca-moments"`, `format_version` 1):

    attrs      n, name (kind of data), format, format_version
    /mean      (p,) float64     mean of the raw rows
    /second    (p, p) float64   biased covariance of the raw rows
    /names     (p,) text        names of the features, where the file had some

Parts are merged by Chan's formula (`statistics.merge`), so the result does not depend on how the rows were divided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.matrix.concatenated import files_of, order_of
from sigmapca_cli.data.moments.accumulate import Moments, merge
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.readers.array_files import is_hdf5
from sigmapca_cli.data.readers.columns import identifying_names
from sigmapca_cli.data.source import Index, Source
from sigmapca_cli.data.standardisation import Standardisation, need_two_samples
from sigmapca_cli.system.atomic import replacing
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import damaged
from sigmapca_cli.system.untrusted_hdf5 import as_text, self_contained, stored

FORMAT, FORMAT_VERSION = "sigmapca-moments", 1
NO_ROWS = (
    "data=moments holds sums over rows, and no rows: use model=pca_svd, ppca or factor_analysis, or read the rows with "
    "data=array"
)


class MomentSource(Source):
    """A source without rows: mean, covariance and principal axes only."""

    has_rows = False

    def __init__(self, m: Moments, names: Sequence[str] | None, options: Standardisation) -> None:
        need_two_samples(m.n, "data=moments")
        self.name, self._merged = "moments", m
        self.n, self.p = m.n, len(m.mean)
        self.names = None if names is None else tuple(names)
        self._standardise(options, hashlib.sha256(m.second.tobytes()).digest())

    def _gather(self, rows: Index | slice) -> NDArray:
        raise InputError(NO_ROWS)

    def _raw_moments(self, diagonal: bool) -> Moments:
        m = self._merged
        return Moments(m.n, m.mean, m.second.diagonal().copy() if diagonal else m.second)


def build(cfg: DataConfig) -> MomentSource:
    """Return the merged moments of all files of `data.path`."""
    if cfg.path is None:
        raise InputError("data=moments needs data.path=FILE, or a pattern such as 'part-*.h5'")
    for key, asked in (("part", cfg.part), ("half", cfg.half)):
        if asked not in (None, "all"):
            raise InputError(f"data.{key}={asked}: {NO_ROWS}")
    merged: Moments | None = None
    first: tuple[Path, list[str] | None] | None = None
    origins: dict[str, Path] = {}
    for path in files_of(cfg.path):
        m, names, origin = read(path)
        if first is not None and (order := order_of(names, first[1], path, first[0])) is not None:
            m = Moments(m.n, m.mean[order], m.second[np.ix_(order, order)])
        if merged is not None and len(m.mean) != len(merged.mean):
            raise InputError(f"{path} has {len(m.mean)} features, the files before it {len(merged.mean)}")
        if origin in origins:
            raise InputError(f"{path} and {origins[origin]} hold the same rows: give each part once")
        merged = merge(merged, m)
        first, origins[origin] = first or (path, names), path
    assert merged is not None and first is not None
    return MomentSource(merged, first[1], Standardisation.of(cfg))


def read(path: Path) -> tuple[Moments, list[str] | None, str]:
    """Return moments, names of the features, and a hash of the content; raise InputError for another file."""
    import h5py

    if not is_hdf5(path):
        raise InputError(f"{path} was not written by sigmapca partial: data=moments takes such files only")
    with damaged(path, "make it again with sigmapca partial"), h5py.File(path, "r", locking=False) as file:
        self_contained(file)
        if as_text(file.attrs.get("format", "")) != FORMAT:
            raise InputError(
                f"{path} was not written by sigmapca partial: data=moments takes such files only"
            )
        if "fourth" in file:  # format version 2: its mean and covariance are those of all parts
            raise InputError(
                f"{path} holds fourth moments, which are no longer read: give the sums that sigmapca partial writes, "
                "or use solver=moments on the rows"
            )
        version = int(file.attrs["format_version"])
        if version > FORMAT_VERSION:
            raise InputError(f"{path} has format version {version}, not {FORMAT_VERSION}: upgrade sigmapca")
        n = int(file.attrs["n"])
        mean, second = (np.asarray(stored(file[key])[...], np.float64) for key in ("mean", "second"))
        names = [as_text(name) for name in stored(file["names"])[...]] if "names" in file else None
        if mean.ndim != 1 or second.shape != 2 * mean.shape or n < 1 or len(names or mean) != len(mean):
            raise ValueError("its arrays do not fit together")
        if not (np.isfinite(mean).all() and np.isfinite(second).all() and (second.diagonal() >= 0).all()):
            raise ValueError("its values are not those of a covariance")
    content = hashlib.sha256(mean.tobytes() + second.tobytes() + str(n).encode()).hexdigest()
    return Moments(n, mean, second), identifying_names(names), content


def write(source: Source, path: Path) -> None:
    """Write count, mean and covariance of the raw rows of a source; raise InputError for too many features."""
    import h5py

    if source.p > WIDE:
        raise InputError(
            f"{source.p} features: the covariance would take {8e-9 * source.p**2:.1f} GB; at most {WIDE} are written"
        )
    m = source.moments()
    with replacing(path) as aside, h5py.File(aside, "w", locking=False) as file:
        file.attrs.update(format=FORMAT, format_version=FORMAT_VERSION, n=m.n, name=source.name)
        file["mean"], file["second"] = m.mean, m.second
        if source.names is not None:
            file.create_dataset("names", data=list(source.names), dtype=h5py.string_dtype())
