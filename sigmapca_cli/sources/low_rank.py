"""Whitening by few of many axes: a matrix (p, p) of rank r that is never made, known by its factors (p, r)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.implicit import WIDE, Axes, ImplicitCovariance

Array = NDArray[Any]


@dataclass(frozen=True)
class LowRank:
    """T = L Rᵀ with L, R (p, r), the columns of R orthonormal. It has the operations that whitening is asked for."""

    left: Array
    right: Array
    __array_ufunc__ = None  # so that `x @ T` comes here

    @property
    def shape(self) -> tuple[int, int]:
        """(p, p)."""
        return len(self.left), len(self.right)

    def __matmul__(self, A: Array) -> Array:
        return np.asarray(self.left @ (self.right.T @ A))

    def __rmatmul__(self, A: Array) -> Array:
        return np.asarray((A @ self.left) @ self.right.T)

    def __mul__(self, number: float) -> LowRank:
        return LowRank(self.left * number, self.right)

    def __truediv__(self, number: float) -> LowRank:
        return LowRank(self.left / number, self.right)

    def astype(self, dtype: Any) -> LowRank:
        """Return the same matrix with factors of this type."""
        return LowRank(self.left.astype(dtype), self.right.astype(dtype))

    def inverse(self) -> LowRank:
        """Return the pseudo-inverse T⁺ = R L⁺, whose rows are spanned by L."""
        return LowRank(self.right, np.linalg.pinv(self.left).T)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"a whitening matrix of {len(self.left)} features is not to be made")


def whole_refused(p: int) -> str:
    """Return why p features are not whitened in all directions."""
    return (
        f"data.whiten of {p} features needs a matrix of {8e-9 * p**2:.1f} GB, and takes {WIDE} features at most: add "
        "data.whiten_rank=R for the R leading axes alone, or drop it, and choose k (model=fastica and model=lica "
        "whiten k components)"
    )


def low_rank_whitening(axes: Axes, kind: str, rank: int) -> LowRank:
    """Return the T of `statistics.whitening_matrix` from the leading axes: L = E Λ^−½; R = E for zca, I for pca.

    Raise InputError where fewer than `rank` axes have any variance.
    """
    if rank > axes.rank:
        raise InputError(
            f"data.whiten_rank={rank}: the data have numerical rank {axes.rank}; lower it to {axes.rank}"
        )
    E = axes.up_to(rank)
    return LowRank(E / np.sqrt(axes.values[:rank]), E if kind == "zca" else np.eye(len(E), rank))


def whitened_covariance(C: ImplicitCovariance, T: LowRank) -> ImplicitCovariance:
    """Return Tᵀ C T = R M Rᵀ with M = LᵀCL (r, r), by one product with C.

    Its axes are those of M: all further eigenvalues are 0.
    """
    M = T.left.T @ (C @ T.left)
    M, R = (M + M.T) / 2, T.right

    def axes(k: int) -> Axes:
        values, U = np.linalg.eigh(M)
        V = R @ U[:, ::-1]
        largest = V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]
        return Axes(np.maximum(values[::-1], 0.0), V * np.where(largest < 0, -1.0, 1.0), float(np.trace(M)))

    return ImplicitCovariance(lambda W: R @ (M @ (R.T @ W)), np.einsum("pi,ij,pj->p", R, M, R), axes)
