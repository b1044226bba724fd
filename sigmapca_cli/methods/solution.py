"""What every method answers with: filters in order, signs fixed, an encoder of unit variance and its left
inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import largest_entries
from sigmapca_cli.data.moments.implicit import WIDE, Covariance, as_covariance

Array = NDArray[np.float64]

INDEPENDENT = 1e-6
"""Least eigenvalue of the cosines of columns that the normal equations may divide by."""


@dataclass
class Solution:
    """W (p, k) filters by decreasing σ; sigma (k,) the data's std of xW; encoder B (p, k): xB has unit
    variance; decoder (k, p): left inverse of the encoder, xB·decoder the reconstruction; rotation V (k,
    k) for ICA only; order (k,): column j of the encoder was component order[j] before sorting."""

    W: Array
    sigma: Array
    encoder: Array
    decoder: Array
    rotation: Array | None = None
    order: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    extra: dict[str, Any] = field(default_factory=dict)

    def pairs(self, marked: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the pairs (m, 2) marked in a symmetric matrix (k, k) in the order before sorting, as sorted."""
        return np.sort(np.argsort(self.order)[np.argwhere(np.triu(marked, 1))], axis=1)


def deviations(W: Array, C: Covariance) -> Array:
    """√diag(WᵀCW), exact on the data: (p, k), (p, p) -> (k,)."""
    return np.sqrt(np.clip(np.einsum("pk,pk->k", W, C @ W), 0, None))


def signed(W: Array) -> Array:
    """Signs (k,) that make the entry of largest |value| of each column positive; ties go to the first entry.

    Entries within a rounding error of the largest count as ties, so that two runs of one solution agree.
    """
    signs = np.sign(W[largest_entries(W, near=1e-6)])
    return np.where(signs == 0, 1.0, signs)


def standardise(B: Array, C: Covariance) -> Array:
    """B with columns scaled so that xB has unit variance; a column without variance becomes zero, not NaN."""
    sigma = deviations(B, C)
    alive = sigma > sigma.max(initial=0.0) * 1e-10
    return np.where(alive, B / np.where(alive, sigma, 1.0), 0.0)


def mixing_norms(encoder: Array) -> Array:
    """Norms (k,) of the columns of the mixing matrix, the rows of the encoder's left inverse  (paper, ICA ordering)."""
    return np.asarray(np.linalg.norm(pseudoinverse(encoder), axis=1), np.float64)


def pseudoinverse(B: Array) -> Array:
    """Return B⁺ (k, p) of B (p, k); of very many features and independent columns as D⁻¹(UᵀU)⁻¹Uᵀ, B = UD, ‖u‖ = 1."""
    if len(B) > WIDE:
        size = np.linalg.norm(B, axis=0)
        U = B / np.where(size > 0, size, 1.0)
        G = U.T @ U
        if np.linalg.eigvalsh(G)[0] > INDEPENDENT:
            return np.asarray((np.linalg.inv(G) / size[:, None]) @ U.T)
    return np.asarray(np.linalg.pinv(B), np.float64)


def finalise(
    W: Any,
    C: Any,
    V: Any = None,
    order: bool = True,
    rank: Callable[[Array], Array] | None = None,
    extra: dict[str, Any] | None = None,
    each: dict[str, Array] | None = None,
) -> Solution:
    """The Solution of filters W (p, k) on data of covariance C (p, p), in float64.

    Filters by decreasing σ, signs fixed. With a rotation V (k, k), B = WΣ⁻¹V: its columns are ordered by
    the std of their projection after normalising them to unit norm (paper, ordering of ICA components),
    and V is permuted and signed with them. `rank` orders by another number of each component, the largest first:
    a function of the encoder (p, k) of unit variance. The norms of W are kept as they were trained. `each` holds
    further values (k,) of one a component, such as a, which are sorted with the components and added to `extra`.
    """
    W, C = np.array(W, np.float64), as_covariance(C)
    sigma = deviations(W, C)
    by_sigma = np.argsort(-sigma, kind="stable") if order else np.arange(W.shape[1])
    signs = signed(W[:, by_sigma])
    W, sigma = W[:, by_sigma] * signs, sigma[by_sigma]
    encoder, sorting = standardise(W, C), by_sigma
    if V is None and rank is not None:
        again = np.argsort(-rank(encoder), kind="stable")
        W, sigma, encoder, sorting = W[:, again], sigma[again], encoder[:, again], by_sigma[again]
    if V is not None:
        V = np.array(V, np.float64)[by_sigma] * signs[:, None]
        encoder = encoder @ V
        norm = np.linalg.norm(encoder, axis=0)
        spread = deviations(encoder / np.where(norm > 0, norm, 1.0), C)
        spread = spread if rank is None else rank(standardise(encoder, C))
        by_spread = np.argsort(-spread, kind="stable") if order else np.arange(V.shape[1])
        flips = signed(encoder[:, by_spread])
        V, encoder = V[:, by_spread] * flips, standardise(encoder[:, by_spread] * flips, C)
        sorting = by_spread
    decoder = pseudoinverse(encoder)
    sorted_each = {name: value[sorting] for name, value in (each or {}).items()}
    return Solution(W, sigma, encoder, decoder, V, sorting, {**(extra or {}), **sorted_each})
