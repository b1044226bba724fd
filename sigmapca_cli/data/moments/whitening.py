"""Whitening by all axes or by few of many, and the covariance of rows that are whitened so."""

from __future__ import annotations

import numpy as np

from sigmapca_cli.data.moments.accumulate import Array, principal_axes, rank_of, signed_axes
from sigmapca_cli.data.moments.implicit import WIDE, Axes, ImplicitCovariance
from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.system.errors import InputError


def whitening_matrix(C: Array, kind: str, leading: int | None = None) -> Array:
    """Return the (p, p) matrix T that whitens data of covariance C.

    kind "pca": T = E Λ^−½; "zca": T = E Λ^−½ Eᵀ, with the `leading` eigenvectors of C, all by default. Tᵀ C T is the
    identity on what they span and 0 beyond it. Directions beyond the numerical rank are dropped; InputError where
    `leading` asks for more. Source: the paper's ZCA whitening is W_L Σ⁻¹ W_Lᵀ with W_L the k leading filters.
    """
    values, E = principal_axes(C)
    rank = rank_of(values)
    if leading is not None and leading > rank:
        raise InputError(
            f"data.whiten_rank={leading}: the data have numerical rank {rank}; lower it to {rank}"
        )
    keep = np.arange(len(values)) < (rank if leading is None else leading)
    inverse_root = np.where(keep, 1 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
    T = E * inverse_root
    return T @ E.T if kind == "zca" else T


def whole_refused(p: int) -> str:
    """Return why p features are not whitened in all directions."""
    return (
        f"data.whiten of {p} features needs a matrix of {8e-9 * p**2:.1f} GB, and takes {WIDE} features at most: add "
        "data.whiten_rank=R for the R leading axes alone, or drop it, and choose k (model=fastica and model=lica "
        "whiten k components)"
    )


def low_rank_whitening(axes: Axes, kind: str, rank: int) -> LowRank:
    """Return the T of `whitening_matrix` from the leading axes: L = E Λ^−½; R = E for zca, I for pca.

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
        return Axes(np.maximum(values[::-1], 0.0), signed_axes(R @ U[:, ::-1]), float(np.trace(M)))

    return ImplicitCovariance(lambda W: R @ (M @ (R.T @ W)), np.einsum("pi,ij,pj->p", R, M, R), axes)
