"""The second moments of a source: mean, covariance and principal axes, with or without the matrix of p² numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import Moments, axis_signs, principal_axes, signed_axes
from sigmapca_cli.data.moments.centred_rows import CentredRows, Products
from sigmapca_cli.data.moments.eigenpairs import TOLERANCE, Pairs, lanczos, polished, spare_of
from sigmapca_cli.data.moments.implicit import WIDE, Axes, Covariance, ImplicitCovariance
from sigmapca_cli.data.moments.whitening import whitened_covariance
from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import available_threads, blas

Array = NDArray[np.float64]
Whitening = Array | LowRank

GRAM_ROWS = 1024
"""Rows up to which the Gram matrix gives the axes at once."""
DENSE = 4096
"""Rows, or features, up to which a dense eigendecomposition gives the axes where products do not converge."""
ROUGH = 0.03
"""Relative error of the eigenvalues that is enough to describe data: a flat spectrum takes long, for nothing."""
GOOD = 1e-8
"""Relative error of the eigenvalues that is no longer worth a dense eigendecomposition, or a word to the user."""


class SecondMoments(ABC):
    """What a `Source` knows of its second moments. Up to `WIDE` features they are matrices, beyond it products."""

    n: int
    p: int
    whitening: Whitening | None
    scale: Array
    unit: float
    _constant: NDArray[np.bool_]
    _data_mean: Array
    _variance: Array
    _offset: Array
    _covariance: Covariance | None
    _axes: tuple[Array, Array] | None
    _leading: tuple[int, Axes] | None
    axes_tolerance: float = TOLERANCE
    """Relative error of the eigenvalues with which the leading axes of very many features are found."""

    @property
    def constant_features(self) -> int:
        """How many features do not vary."""
        return int(self._constant.sum())

    @abstractmethod
    def _gather(self, rows: NDArray[np.int64] | slice) -> Any: ...

    @abstractmethod
    def _raw_moments(self, diagonal: bool) -> Moments: ...

    def _gain(self) -> Array:
        """1/scale, and 0 for constant features (p,)."""
        return np.where(self._constant, 0.0, 1.0 / self.scale)

    def _scaled_covariance(self) -> Array:
        gain = self._gain()
        C = self._raw_moments(diagonal=False).second * np.outer(gain, gain)
        return (C + C.T) / 2

    def covariance(self) -> tuple[Array, Covariance]:
        """Mean (p,), zero where the data are centred, and biased covariance (p, p) of the standardised rows; cached.

        Of more than `WIDE` features the covariance is implicit.
        """
        if self._covariance is None:
            if self.p > WIDE:
                diagonal = self._variance * self._gain() ** 2
                whole, T = ImplicitCovariance(self._times, diagonal, self._own_axes), self.whitening
                self._covariance = whitened_covariance(whole, T) if isinstance(T, LowRank) else whole
            else:
                C = self._scaled_covariance()
                if self.whitening is not None:
                    assert not isinstance(self.whitening, LowRank)
                    C = self.whitening.T @ C @ self.whitening
                self._covariance = (C + C.T) / 2
        return self._offset, self._covariance

    def principal_axes(self) -> tuple[Array, Array]:
        """Eigenvalues (p,), decreasing, and eigenvectors (p, p) of the covariance; cached.

        Raise InputError for more than `WIDE` features.
        """
        if self.p > WIDE:
            raise InputError(
                f"all principal axes of {self.p} features would take {8e-9 * self.p**2:.1f} GB: ask for k of them"
            )
        if self._axes is None:
            C = self.covariance()[1]
            assert not isinstance(C, ImplicitCovariance)
            self._axes = principal_axes(C)
        return self._axes

    def leading_axes(self, k: int) -> Axes:
        """Return the leading k principal axes, and some further ones that are less exact; cached."""
        C = self.covariance()[1]
        if isinstance(C, ImplicitCovariance):
            return C.axes(k)
        values, vectors = self.principal_axes()
        return Axes(values, vectors, float(values.sum()))

    def _own_axes(self, k: int) -> Axes:
        """Return the leading k axes of the implicit covariance of this source; cached."""
        k = min(k, self.n, self.p)
        if self._leading is None or self._leading[0] < k:
            self._leading = (k, self._found_axes(k))
        return self._leading[1]

    def approximate(self) -> str | None:
        """Return a sentence on how good the leading axes are, where products have not converged; else None."""
        axes = None if self._leading is None else self._leading[1]
        if axes is None or axes.error <= GOOD:
            return None
        return (
            f"the {self._leading[0] if self._leading else 0} leading axes of {self.n} rows × {self.p} features are "
            f"approximate: their eigenvalues are right to {axes.error:.1g} of themselves, at worst"
        )

    def _found_axes(self, k: int) -> Axes:
        few = min(self.n, self.p)
        total = float(self.covariance()[1].trace())
        rough = self.axes_tolerance > TOLERANCE
        if self.n <= (2 if rough else 1) * GRAM_ROWS or 5 * k > few:
            if few > 2 * DENSE:
                raise InputError(
                    f"k={k} of {self.n} rows × {self.p} features: so many components need a matrix of {few} × {few}; "
                    f"choose k up to {few // 5}"
                )
            return self._dense_axes(k, total)
        axes = self._iterated_axes(k)
        return axes if rough or axes.error <= GOOD or few > DENSE else self._dense_axes(k, total)

    def _dense_axes(self, k: int, total: float) -> Axes:
        """Return the axes from the Gram matrix or the covariance, whichever is smaller."""
        gram = self.n <= self.p
        with blas(available_threads()):
            G = self._products().gram() / self.n if gram else self._scaled_covariance()
            values, U = top_of(G, k + spare_of(self.p))
            alive = int((values[: U.shape[1]] > 1e-13 * max(values[0], 0.0)).sum())
            if alive == 0:
                return Axes(np.zeros(1), np.eye(self.p, 1), total)
            U = self._back_projected(U[:, :alive]) if gram else U[:, :alive]
        # One product corrects what the square of the condition number cost, and gives the residuals.
        pairs = polished(self._times, U, min(k, alive))
        values[:alive] = pairs.values
        whole = len(values) == min(self.n, self.p)
        return Axes(np.maximum(values, 0.0), self._remembered(pairs, k), total, whole, pairs.error)

    def _iterated_axes(self, k: int) -> Axes:
        """Return the axes by iterated products with the covariance."""
        return axes_by_products(self._times, self.covariance()[1].diagonal(), k, self.axes_tolerance)

    def _remembered(self, pairs: Pairs, k: int) -> Array:
        """Return the eigenvectors (p, m), signed; the covariance keeps the product with k of them, asked for next."""
        C, signs = self.covariance()[1], axis_signs(pairs.vectors)
        pairs.vectors[...] *= signs
        if isinstance(C, ImplicitCovariance) and self.whitening is None and pairs.image is not None:
            pairs.image[...] *= signs
            C.remember(pairs.vectors[:, :k], pairs.image[:, :k])
        return pairs.vectors

    def _products(self) -> Products:
        """Return the rows of this source for products in float64."""
        return CentredRows(self._gather, self.n, self.p, self.unit, self._data_mean, self._gain())

    def _times(self, W: Array) -> Array:
        """Return CW (p, b) for W (p, b), C the covariance of the standardised rows, by one pass over them."""
        total = self._products().times(row_shards.agreed(np.ascontiguousarray(W)))
        total = row_shards.added((total,), patient=True)[0]
        total /= self.n
        return total

    def _back_projected(self, U: Array) -> Array:
        """Return x̄ᵀU (p, m), the eigenvectors of the covariance from those of the Gram matrix (n, m), each scaled."""
        V = row_shards.added((self._products().transposed(U),), patient=True)[0]
        V /= np.maximum(np.sqrt(np.einsum("ij,ij->j", V, V)), np.finfo(np.float64).tiny)
        return V


def top_of(G: Array, m: int) -> tuple[Array, Array]:
    """Return eigenvalues, decreasing, all of a small matrix or m, and the leading m eigenvectors (q, m) of G."""
    if len(G) <= GRAM_ROWS or m >= len(G):
        values, U = np.linalg.eigh(G)
        return values[::-1].copy(), U[:, ::-1][:, :m]
    from scipy.linalg import eigh

    values, U = eigh(G, subset_by_index=(len(G) - m, len(G) - 1), check_finite=False)
    return values[::-1].copy(), U[:, ::-1]


def axes_by_products(
    product: Callable[[Array], Array], diagonal: Array, k: int, tol: float = TOLERANCE
) -> Axes:
    """Return the leading k axes of a covariance with this diagonal (p,), and some further ones, by block Lanczos."""
    pairs = lanczos(product, len(diagonal), k, tol=tol)
    total = float(diagonal.sum())
    return Axes(np.maximum(pairs.values, 0.0), signed_axes(pairs.vectors), total, False, pairs.error)


def axes_of(C: Covariance, k: int) -> Axes:
    """Return the leading k axes of a covariance, and what else is known of them."""
    if isinstance(C, ImplicitCovariance):
        return C.axes(k)
    values, vectors = principal_axes(C)
    return Axes(values, vectors, float(values.sum()))
