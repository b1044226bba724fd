"""The cross moments that the Newton solver works on, from one pass over the rows.

Blocks are sized for the cache and computed in the dtype of the rows; sums over blocks are float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton.scores import Score
from sigmapca_cli.solvers.rows.parallel import BLOCK, means
from sigmapca_cli.solvers.rows.weights import split, times

Array = np.ndarray
SLICE = 512
"""Number of rows whose products of three components are held at once."""


@dataclass(frozen=True)
class ScoreMoments:
    """ScoreMoments of the standardised components z = Y·M of one candidate.

    Q (k, k): Q_ij = E[z_i φ(z_j)];  m (k,): E[z_j φ(z_j)];  c (k,): E[φ′(z_j)];
    T (k, k, k) or None: T_jil = E[φ′(z_j) z_i z_l];  error (k,) or None: standard error of m_j − c_j.
    """

    Q: Array
    c: Array
    T: Array | None = None
    error: Array | None = None

    @property
    def m(self) -> Array:
        """E[z_j φ(z_j)]."""
        return np.diag(self.Q)

    def signed(self, signs: Array) -> ScoreMoments:
        """Return the same moments for the score s_j·φ, s_j = ±1."""
        T = None if self.T is None else self.T * signs[:, None, None]
        return ScoreMoments(self.Q * signs, self.c * signs, T, self.error)


def measure(
    Y: Array,
    M: Array,
    score: Score,
    a: Array,
    *,
    third: bool = False,
    error: bool = False,
    block: int = BLOCK,
) -> ScoreMoments:
    """Return the cross moments of z = Y·M over all rows of Y (n, k), M (k, k) = RΣ⁻¹, a (k,).

    Y may have a further column, the weights of the rows, of mean 1: the moments are weighted then.

    third: add T, which costs n·k³ multiplications. error: add the standard error of m_j − c_j, which assumes that
    rows are independent (overlapping patches are not: for them it is a lower bound).
    """
    Mt, at = np.ascontiguousarray(M, Y.dtype), np.asarray(a, Y.dtype)

    def part(rows: Array) -> tuple[Array, ...]:
        y, weights = split(rows, len(Mt))
        z = y @ Mt
        phi, dphi = (times(values, weights) for values in score(z, at))
        found = [z.T @ phi, np.ones(len(z), z.dtype) @ dphi]
        if third:
            found.append(third_moments(z, dphi))
        if error:
            found.append(np.square(z * phi - dphi).sum(0))
        return tuple(found)

    n, (Q, c, *more) = means(part, Y, block)
    T = unfolded(more.pop(0)) if third else None
    gap = np.diag(Q) - c
    se = np.sqrt(np.maximum(more.pop(0) - gap**2, 0) / n) if error else None
    return ScoreMoments(Q, c, T, se)


def third_moments(z: Array, dphi: Array) -> Array:
    """Return Σ φ′(z_j) z_i z_l for i ≤ l, (k, k(k + 1)/2), float64; z_i z_l is symmetric in i and l."""
    k = z.shape[1]
    T = np.zeros((k, k * (k + 1) // 2))
    pairs = np.empty((min(SLICE, len(z)), T.shape[1]), z.dtype)
    for start in range(0, len(z), SLICE):
        part = z[start : start + SLICE]
        held, place = pairs[: len(part)], 0
        for i in range(k):
            np.multiply(part[:, i : i + 1], part[:, i:], out=held[:, place : place + k - i])
            place += k - i
        T += dphi[start : start + SLICE].T @ held
    return T


def unfolded(T: Array) -> Array:
    """Return T (k, k(k + 1)/2) as (k, k, k), symmetric in its last two axes."""
    k = len(T)
    full = np.empty((k, k, k))
    i, j = np.triu_indices(k)
    full[:, i, j] = full[:, j, i] = T
    return full
