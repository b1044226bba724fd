"""Means over a batch that is spread over processes, and the mean and principal axes of rows that come in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from sigmapca_cli.data.moments.accumulate import principal_axes, rank_of, streamed_moments
from sigmapca_cli.system.errors import InputError


def batch_mean(v: Tensor, sync: bool) -> Tensor:
    """Return the mean over the rows of the whole batch, (b, m) -> (1, m); gradients flow through it.

    `sync`: average over all processes, which must hold equally many rows, as samplers of torch give them.
    """
    mean = v.mean(0, keepdim=True)
    if not (sync and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return mean
    from torch.distributed.nn.functional import all_reduce

    # its gradient is the sum of the gradients of all processes
    total: Tensor = all_reduce(mean)  # type: ignore[no-untyped-call]
    return total / dist.get_world_size()


def batches_of(x: Any) -> Iterator[Tensor]:
    """Yield batches of rows: x itself if it is a tensor or an array, else what it yields, without labels.

    Raise ValueError for what is neither.
    """
    if isinstance(x, Tensor | np.ndarray):
        yield torch.as_tensor(x)
        return
    for part in x:
        batch = part[0] if isinstance(part, tuple | list) and part else part
        if not isinstance(batch, Tensor | np.ndarray):
            raise ValueError(
                f"init_pca: a batch of type {type(part).__name__}; give tensors, arrays, or tuples that begin with one"
            )
        yield torch.as_tensor(batch)


def moments_of(rows: Iterable[Tensor], p: int) -> tuple[Tensor, Tensor]:
    """Return the mean (p,) and the covariance (p, p), divided by n, of rows (n, p) in parts; float64.

    Raise ValueError for rows of another width, for no two rows, and for values that are not finite.
    """

    def parts() -> Iterator[np.ndarray]:
        for part in rows:
            if part.shape[-1] != p:
                raise ValueError(f"init_pca: rows of {part.shape[-1]} features, this layer has {p}")
            x = part.detach().reshape(-1, p).to("cpu", torch.float64).numpy()
            if not np.isfinite(x).all():
                raise ValueError("init_pca: the rows hold NaN or infinite values")
            yield x

    try:
        found = streamed_moments(parts())
    except InputError as problem:
        raise ValueError(f"init_pca: {problem}") from None
    if found.n < 2:
        raise ValueError(f"init_pca: {found.n} rows have no variance; give at least 2")
    return torch.as_tensor(found.mean), torch.as_tensor(found.second)


def leading(covariance: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues (k,) of a covariance (p, p), and their eigenvectors (p, k).

    Raise ValueError if fewer than k directions have variance.
    """
    values, vectors = principal_axes(covariance.numpy())
    rank = rank_of(values)
    if rank < k:
        raise ValueError(f"init_pca: {k} components, but the rows have variance in {rank} directions only")
    return torch.as_tensor(values[:k].copy()), torch.as_tensor(vectors[:, :k].copy())
