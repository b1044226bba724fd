"""Fourth moments of rows that are not here, in axes that all parts share: what `sigmapca partial --axes` writes.

In a file of `data=moments` of format version 2 there is a group beside the merged moments of all parts:

    /fourth    attrs n, standardisation (JSON)
    axes       (p, k) float64   principal axes P of the standardised rows x
    sigma      (k,) float64     standard deviations of xP over all parts
    second     (k, k) float64   Σ zᵀz over the rows of this part, z = (x − mean)P/σ
    products   (m,) float64     Σ z_a z_b z_c z_d, a ≤ b ≤ c ≤ d: m = k(k + 1)(k + 2)(k + 3)/24

Sums of parts that have the same moments and axes are added.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.options import Standardisation
from sigmapca_cli.untrusted_files import as_text, stored

Array = NDArray[np.float64]

MOST_AXES = 64
"""Largest number of axes: the moments are a matrix of 35 MB then."""


@dataclass(frozen=True)
class FourthSums:
    """The sums of one or several parts; the fields are those of the file."""

    n: int
    axes: Array
    sigma: Array
    second: Array
    products: Array
    standardisation: str

    @property
    def k(self) -> int:
        """Number of axes."""
        return self.axes.shape[1]

    @property
    def basis(self) -> str:
        """A hash of what the parts must have in common."""
        words = self.axes.tobytes() + self.sigma.tobytes() + self.standardisation.encode()
        return hashlib.sha256(words).hexdigest()

    @property
    def digest(self) -> bytes:
        """A hash of the sums."""
        return hashlib.sha256(self.second.tobytes() + self.products.tobytes() + str(self.n).encode()).digest()

    def __add__(self, other: FourthSums) -> FourthSums:
        return replace(
            self,
            n=self.n + other.n,
            second=self.second + other.second,
            products=self.products + other.products,
        )


def number_of_products(k: int) -> int:
    """Return how many fourth moments of k components there are."""
    return k * (k + 1) * (k + 2) * (k + 3) // 24


def as_json(options: Standardisation) -> str:
    """Return the options of the standardisation as one line."""
    return json.dumps(asdict(options), sort_keys=True)


def refuse_other_standardisation(sums: FourthSums, options: Standardisation) -> None:
    """Raise InputError unless the rows were standardised with these options before they were projected."""
    before, now = json.loads(sums.standardisation), asdict(options)
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            raise InputError(
                f"data.{name}={now.get(name)}: the fourth moments of data.path were made with "
                f"data.{name}={before.get(name)}; give that, or make them again with sigmapca partial --axes"
            )


def write(file: Any, sums: FourthSums) -> None:
    """Write the group into an open file."""
    group = file.create_group("fourth")
    group.attrs.update(n=sums.n, standardisation=sums.standardisation)
    for name in ("axes", "sigma", "second", "products"):
        group[name] = getattr(sums, name)


def read(file: Any, p: int) -> FourthSums | None:
    """Return the sums in an open file of p features; None where it has none. Raise ValueError if they are damaged."""
    import h5py

    if "fourth" not in file:
        return None
    group = file["fourth"]
    if not isinstance(group, h5py.Group):
        raise ValueError("fourth is not a group")
    axes, sigma, second, products = (
        np.asarray(stored(group[name])[...], np.float64) for name in ("axes", "sigma", "second", "products")
    )
    k, n = len(sigma), int(group.attrs["n"])
    shapes = (axes.shape, sigma.shape, second.shape, products.shape)
    if shapes != ((p, k), (k,), (k, k), (number_of_products(k),)) or not 1 <= k <= MOST_AXES or n < 1:
        raise ValueError("the arrays of its fourth moments do not fit together")
    if not all(np.isfinite(array).all() for array in (axes, sigma, second, products)) or (sigma <= 0).any():
        raise ValueError("its fourth moments are not finite")
    words = as_text(group.attrs["standardisation"])
    if not isinstance(json.loads(words), dict):
        raise ValueError("its standardisation cannot be read")
    return FourthSums(n, axes, sigma, second, products, words)
