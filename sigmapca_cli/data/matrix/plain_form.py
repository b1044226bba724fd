"""Rows of a program in the form that NumPy, tables and SciPy have: tensors, lazy tables and masked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.system.errors import InputError


def plain_form(data: Any, what: str = "data") -> Any:
    """Return data as an array, a table or a sparse matrix; what is one already is returned as it is.

    A tensor comes from its device and its graph, in float32 if NumPy has not its type; a sparse one as a matrix of
    SciPy. A lazy table is collected. Masked values are nan. Raise InputError for an array that cannot be read here.
    """
    if hasattr(data, "collect") and hasattr(data, "lazy"):
        return data.collect()
    if hasattr(data, "detach") and hasattr(data, "layout"):
        return of_tensor(data.detach(), what)
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype(np.float64), np.nan) if np.ma.is_masked(data) else data.data
    if hasattr(data, "__array_namespace__") and not isinstance(data, np.ndarray):
        return of_array(data, what)
    return data


def of_tensor(tensor: Any, what: str) -> Any:
    """Return a tensor of torch as an array, or as a matrix of SciPy if it is sparse."""
    if tensor.is_meta or tensor.is_nested:
        kind = "of the meta device, which has no values" if tensor.is_meta else "with rows of several lengths"
        raise InputError(f"{what}: a tensor {kind}; give a dense one")
    tensor = (tensor.dequantize() if tensor.is_quantized else tensor).cpu()
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "strided":
        return numbers_of(tensor)
    if layout not in ("sparse_coo", "sparse_csr", "sparse_csc") or tensor.ndim != 2:
        raise InputError(
            f"{what}: a tensor of layout {layout}, {tensor.ndim} dimensions; give its to_dense()"
        )
    from scipy import sparse

    if layout == "sparse_coo":
        tensor = tensor.coalesce()
        return sparse.coo_matrix(
            (numbers_of(tensor.values()), tensor.indices().numpy()), shape=tuple(tensor.shape)
        )
    rows = layout == "sparse_csr"
    bounds, places = (
        (tensor.crow_indices(), tensor.col_indices())
        if rows
        else (tensor.ccol_indices(), tensor.row_indices())
    )
    made = sparse.csr_matrix if rows else sparse.csc_matrix
    return made((numbers_of(tensor.values()), places.numpy(), bounds.numpy()), shape=tuple(tensor.shape))


def numbers_of(tensor: Any) -> np.ndarray:
    """Return a dense tensor as an array, in float32 if NumPy has not its type."""
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16, float8
        return np.asarray(tensor.float().numpy())


def of_array(data: Any, what: str) -> np.ndarray:
    """Return an array of another library that follows the array API as one of NumPy."""
    try:
        found = np.asarray(data)
    except Exception:  # each library has its own error for an array on a device
        name = type(data).__module__.partition(".")[0]
        raise InputError(f"{what}: an array of {name} that NumPy cannot read; give a NumPy array") from None
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found
