"""What NumPy arrays and torch tensors both can do under different names, without loading torch for the former."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray, or torch.Tensor


def is_numpy(value: Array) -> bool:
    """Return whether this is an array of NumPy's."""
    return isinstance(value, np.ndarray)


def as_numpy(value: Array) -> np.ndarray:
    """The values, or a number, as an array of NumPy's; no copy where it is one, or shares memory with one."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


def copy_of(value: Array) -> Array:
    """The same in memory of its own."""
    return value.copy() if isinstance(value, np.ndarray) else value.detach().clone()


def detached(value: Array) -> Array:
    """The same in memory of its own, laid out as it was: another order of the sums ends in other last bits."""
    return value.copy(order="K") if isinstance(value, np.ndarray) else value.detach().clone()


def contiguous(value: Array) -> Array:
    """The same with its last axis running fastest in memory."""
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value.contiguous()


def made_like(like: Array, values: np.ndarray) -> Array:
    """The values, of their own type, as an array of the kind and on the device of `like`."""
    if isinstance(like, np.ndarray):
        return np.array(values)
    import torch

    return torch.from_numpy(np.array(values)).to(like.device)


def stack(values: Sequence[Array]) -> Array:
    """Arrays of one kind along a new first axis."""
    if isinstance(values[0], np.ndarray):
        return np.stack(values)
    import torch

    return torch.stack(list(values))


def as_rows(store: dict[str, Array], name: str) -> np.ndarray:
    """Return (p, k) or (R, p, k) as one contiguous (R·k, p); the store keeps a view of it in its own shape."""
    rows = np.ascontiguousarray(store[name].swapaxes(-1, -2))
    store[name] = rows.swapaxes(-1, -2)
    return rows.reshape(-1, rows.shape[-1])
