"""A covariance that is never made: C (p, p) of many features, known by its products with a few columns.

C has the operations that methods ask of a covariance, `C @ W`, `W.T @ C`, `trace` and `diagonal`. Each product is a
pass over the rows, x̄ᵀ(x̄W)/n with x̄ the centred rows in float64. So nothing of p² numbers is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import largest_entries, rank_of

Array = NDArray[np.float64]
Index = tuple[NDArray[np.intp], NDArray[np.intp]]

WIDE = 2048
"""Features beyond which the covariance is implicit."""
REMEMBERED = 3
"""Number of products that are kept: σ, the explained variance and the correlation ask for those of W, of W with unit
columns, and of W/σ, which are multiples of one."""
COMPARED = 1 << 14
"""Number of rows of two matrices that are compared at once."""
ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative difference of two numbers that are equal but for their rounding."""


@dataclass(frozen=True)
class Axes:
    """Leading principal axes.

    values (m,): eigenvalues of the covariance, decreasing; vectors (p, m'): eigenvectors of the first m'. total: sum of
    all p eigenvalues. whole: whether `values` holds every eigenvalue above 0. error: largest ‖Cv − λv‖/λ of the axes
    asked for, a bound of the relative error of the eigenvalues; 0 where a dense eigendecomposition gave them.
    """

    values: Array
    vectors: Array
    total: float
    whole: bool = True
    error: float = 0.0

    @property
    def rank(self) -> int:
        """Numerical rank; where `whole` is false, the number of known eigenvalues that are not rounding."""
        return rank_of(self.values, 8 * len(self.vectors) * float(np.finfo(np.float64).eps))

    def divided(self, number: float) -> Axes:
        """Return the axes of the covariance divided by a number."""
        return replace(self, values=self.values / number, total=self.total / number)

    def up_to(self, k: int) -> Array:
        """Return the first k eigenvectors (p, k)."""
        return self.vectors[:, :k]


class ImplicitCovariance:
    """C (p, p) by its products.

    product: W (p, b) ↦ CW (p, b), float64; diagonal (p,); axes: k ↦ the leading k `Axes`.
    """

    __array_ufunc__ = None  # so that `W.T @ C` comes here

    def __init__(
        self, product: Callable[[Array], Array], diagonal: Array, axes: Callable[[int], Axes]
    ) -> None:
        self._product, self._diagonal, self.axes = product, diagonal, axes
        self._remembered: tuple[tuple[Array, Index, Array], ...] = ()
        self.shape = (len(diagonal), len(diagonal))

    def __len__(self) -> int:
        return len(self._diagonal)

    @property
    def T(self) -> ImplicitCovariance:
        """C itself, which is symmetric."""
        return self

    def diagonal(self) -> Array:
        """Return the variances (p,)."""
        return self._diagonal

    def trace(self) -> float:
        """Return the total variance."""
        return float(self._diagonal.sum())

    def astype(self, dtype: Any) -> ImplicitCovariance:
        """Return C itself: its products are in float64."""
        return self

    def __matmul__(self, W: Any) -> Array:
        W = np.asarray(W, np.float64)
        for known, at, product in self._remembered:
            size = multiple_of(known, at, W)
            if size is not None:
                return product * size
        product = self._product(W)
        self.remember(W.copy(), product)
        return product.copy()

    def remember(self, W: Array, product: Array) -> None:
        """Keep the product CW (p, b) of W (p, b): neither is to be changed from now on."""
        # One assignment, so that other threads see the old products or the new ones.
        self._remembered = ((W, largest_entries(W), product), *self._remembered)[:REMEMBERED]

    def __rmatmul__(self, A: Any) -> Array:
        return (self @ np.asarray(A).T).T

    def divided(self, number: float) -> ImplicitCovariance:
        """Return C/number."""
        return ImplicitCovariance(
            lambda W: (self @ W) / number, self._diagonal / number, lambda k: self.axes(k).divided(number)
        )

    def about(self, mean: Array) -> ImplicitCovariance:
        """Return C + mean·meanᵀ, the second moments about zero of rows of this mean (p,)."""
        return ImplicitCovariance(
            lambda W: self @ W + np.outer(mean, mean @ W), self._diagonal + mean**2, self.axes
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"a covariance of {len(self)} features is not to be made")


def multiple_of(known: Array, at: Index, W: Array) -> Array | None:
    """Return s (b,) with W = known · diag(s), to rounding, for columns (p, b); None where there is no such s.

    at: where the largest entry of each column of `known` is.
    """
    if known.shape != W.shape:
        return None
    largest = known[at]
    size = np.where(largest == 0, 1.0, W[at] / np.where(largest == 0, 1.0, largest))
    for start in range(0, len(W), COMPARED):  # other columns are told apart by the first rows
        expected = known[start : start + COMPARED] * size
        if not (np.abs(W[start : start + COMPARED] - expected) <= ROUNDING * np.abs(expected)).all():
            return None
    return size


Covariance = NDArray[np.float64] | ImplicitCovariance


def as_covariance(C: Any) -> Any:
    """Return C in float64: an array (p, p), or an implicit covariance as it is."""
    return in_type(C, np.float64)


def in_type(C: Any, dtype: Any) -> Any:
    """Return a covariance array in this type; an implicit covariance as it is."""
    return C if isinstance(C, ImplicitCovariance) else np.asarray(C, dtype)


def about_zero(C: Any, mean: Array) -> Any:
    """Return C + mean·meanᵀ."""
    if isinstance(C, ImplicitCovariance):
        return C.about(mean) if mean.any() else C
    return C + np.outer(mean, mean)
