"""data=moments: count, mean and covariance of rows that are not here, as `sigmapca partial` wrote them for each part.

Layout of a file (`format = "sigmapca-moments"`, `format_version` 1):

    attrs      n, name (kind of data), format, format_version
    /mean      (p,) float64     mean of the raw rows
    /second    (p, p) float64   biased covariance of the raw rows
    /names     (p,) text        names of the features, where the file had some
    /fourth    group            fourth moments of a part (`fourth_sums`); format_version 2, and the rest is of all parts

Parts are merged by Chan's formula (`statistics.merge`), so the result does not depend on how the rows were divided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.atomic import replacing
from sigmapca_cli.errors import InputError
from sigmapca_cli.sources import fourth_sums
from sigmapca_cli.sources.array_files import is_hdf5
from sigmapca_cli.sources.base import Index, Source
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.fourth_sums import FourthSums, refuse_other_standardisation
from sigmapca_cli.sources.implicit import WIDE
from sigmapca_cli.sources.options import Standardisation, need_two_samples
from sigmapca_cli.sources.several import files_of
from sigmapca_cli.sources.statistics import Moments, merge
from sigmapca_cli.untrusted_files import as_text, damaged, self_contained, stored

FORMAT, FORMAT_VERSION = "sigmapca-moments", 2
NO_ROWS = (
    "data=moments holds sums over rows, and no rows: use model=pca_svd, ppca or factor_analysis, or solver=moments on "
    "fourth moments (sigmapca partial --axes), or read the rows with data=array"
)


class MomentSource(Source):
    """A source without rows: mean, covariance and principal axes only."""

    has_rows = False

    def __init__(
        self,
        m: Moments,
        names: Sequence[str] | None,
        options: Standardisation,
        fourth: FourthSums | None = None,
    ) -> None:
        need_two_samples(m.n, "data=moments")
        self.name, self._merged = "moments", m
        self.n, self.p = m.n, len(m.mean)
        self.names = None if names is None else tuple(names)
        self.fourth, self.options = fourth, options
        self._standardise(
            options,
            hashlib.sha256(m.second.tobytes()).digest() + (b"" if fourth is None else fourth.digest),
        )

    def gain(self) -> NDArray[np.float64]:
        """Return 1/scale, and 0 for constant features (p,)."""
        return self._gain()

    def _gather(self, index: Index) -> NDArray:
        raise InputError(NO_ROWS)

    def _raw_moments(self, diagonal: bool) -> Moments:
        m = self._merged
        return Moments(m.n, m.mean, m.second.diagonal().copy() if diagonal else m.second)


def build(cfg: DataConfig) -> MomentSource:
    """Return the merged moments of all files of `data.path`."""
    if cfg.path is None:
        raise InputError("data=moments needs data.path=FILE, or a pattern such as 'part-*.h5'")
    if cfg.half != "all":
        raise InputError(f"data.half={cfg.half}: {NO_ROWS}")
    merged: Moments | None = None
    fourth: FourthSums | None = None
    first: tuple[Path, list[str] | None] | None = None
    origins: dict[str, Path] = {}
    for path in files_of(cfg.path):
        m, names, origin, sums = read(path)
        if first is not None and (sums is None) != (fourth is None):
            raise InputError(
                f"{path} and {first[0]}: only one of them has fourth moments; give files of one kind"
            )
        if merged is not None and len(m.mean) != len(merged.mean):
            raise InputError(f"{path} has {len(m.mean)} features, the files before it {len(merged.mean)}")
        if first is not None and names != first[1]:
            raise InputError(f"{path} has other names of features than {first[0]}")
        if origin in origins:
            raise InputError(f"{path} and {origins[origin]} hold the same rows: give each part once")
        if sums is not None:
            if fourth is not None and (sums.basis != fourth.basis or not same(merged, m)):
                raise InputError(
                    f"{path} and {first and first[0]} have other axes: make them with the same --axes"
                )
            fourth, merged = sums if fourth is None else fourth + sums, m
        else:
            merged = merge(merged, m)
        first, origins[origin] = first or (path, names), path
    assert merged is not None and first is not None
    options = Standardisation.of(cfg)
    if fourth is not None:
        if fourth.n != merged.n:
            raise InputError(
                f"data.path has the fourth moments of {fourth.n} rows, and its axes are those of {merged.n}: give the "
                "fourth moments of all parts, each once"
            )
        refuse_other_standardisation(fourth, options)
    return MomentSource(merged, first[1], options, fourth)


def same(one: Moments | None, other: Moments) -> bool:
    """Return whether two parts hold the same moments of all rows."""
    return (
        one is not None
        and one.n == other.n
        and np.array_equal(one.mean, other.mean)
        and np.array_equal(one.second, other.second)
    )


def is_moments(path: Path) -> bool:
    """Return whether a file has the attribute of this format."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            return as_text(file.attrs.get("format", "")) == FORMAT
    except Exception:  # damaged: the next reader raises the error
        return False


def read(path: Path) -> tuple[Moments, list[str] | None, str, FourthSums | None]:
    """Return moments, names of the features, a hash of the content, and fourth moments where there are some.

    Raise InputError for another file.
    """
    import h5py

    if not is_hdf5(path):
        raise InputError(f"{path} was not written by sigmapca partial: data=moments takes such files only")
    with damaged(path, "make it again with sigmapca partial"), h5py.File(path, "r", locking=False) as file:
        self_contained(file)
        if as_text(file.attrs.get("format", "")) != FORMAT:
            raise InputError(
                f"{path} was not written by sigmapca partial: data=moments takes such files only"
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
        fourth = fourth_sums.read(file, len(mean))
    words = mean.tobytes() + second.tobytes() + str(n).encode()
    content = hashlib.sha256(words + (b"" if fourth is None else fourth.digest)).hexdigest()
    return Moments(n, mean, second), names, content, fourth


def write(source: Source, path: Path, fourth: FourthSums | None = None) -> None:
    """Write count, mean and covariance of the raw rows of a source, and fourth moments of a part of them.

    Raise InputError for too many features.
    """
    import h5py

    if source.p > WIDE:
        raise InputError(
            f"{source.p} features: the covariance would take {8e-9 * source.p**2:.1f} GB; at most {WIDE} are written"
        )
    m = source.raw_moments()
    with replacing(path) as aside, h5py.File(aside, "w", locking=False) as file:
        version = 1 if fourth is None else FORMAT_VERSION
        file.attrs.update(format=FORMAT, format_version=version, n=m.n, name=source.name)
        file["mean"], file["second"] = m.mean, m.second
        if source.names is not None:
            file.create_dataset("names", data=list(source.names), dtype=h5py.string_dtype())
        if fourth is not None:
            fourth_sums.write(file, fourth)
