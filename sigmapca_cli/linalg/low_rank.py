"""A matrix (p, p) of rank r that is never made, known by its factors (p, r): whitening by few of many axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
