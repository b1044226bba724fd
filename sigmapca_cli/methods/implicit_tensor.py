"""An implicit covariance for tensors: products with W (…, p, k) on any device, computed in float64 on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sigmapca_cli.data.moments.implicit import ImplicitCovariance


class TensorCovariance:
    """C (p, p) of many features, by its products; it has what methods ask of a covariance tensor."""

    dtype = torch.float64

    def __init__(self, C: ImplicitCovariance) -> None:
        self.C, self.shape = C, C.shape

    def to(self, *args: Any, **kwargs: Any) -> TensorCovariance:
        """Return C itself: a product has the type and the device of its factor."""
        return self

    def __matmul__(self, W: Tensor) -> Tensor:
        columns = W.detach().to("cpu", torch.float64).numpy()
        moved = np.moveaxis(columns, -2, 0)  # (p, …, k)
        product = (self.C @ moved.reshape(len(moved), -1)).reshape(moved.shape)
        return torch.from_numpy(np.ascontiguousarray(np.moveaxis(product, 0, -2))).to(W)


def tensor_of(C: Any) -> Any:
    """Return a covariance as a tensor, or as a `TensorCovariance` where it is implicit."""
    if isinstance(C, ImplicitCovariance):
        return TensorCovariance(C)
    return C if isinstance(C, TensorCovariance) else torch.as_tensor(C)


def leading_axes(C: Any, k: int) -> tuple[Tensor, Tensor]:
    """Return the leading k eigenvalues, decreasing, and eigenvectors (p, k) of a covariance tensor, in float64."""
    if isinstance(C, TensorCovariance):
        axes = C.C.axes(k)
        return torch.from_numpy(axes.values[:k].copy()), torch.from_numpy(axes.up_to(k).copy())
    values, vectors = torch.linalg.eigh(C.to(torch.float64))
    return values.flip(0)[:k], vectors.flip(-1)[:, :k]
