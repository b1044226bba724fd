"""Whitening by few of many axes, and the covariance of rows that are whitened so."""

from __future__ import annotations

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.low_rank import LowRank
from sigmapca_cli.sources.implicit import WIDE, Axes, ImplicitCovariance
from sigmapca_cli.sources.statistics import signed_axes


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
        return Axes(np.maximum(values[::-1], 0.0), signed_axes(R @ U[:, ::-1]), float(np.trace(M)))

    return ImplicitCovariance(lambda W: R @ (M @ (R.T @ W)), np.einsum("pi,ij,pj->p", R, M, R), axes)
