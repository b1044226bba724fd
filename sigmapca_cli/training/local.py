"""The field in the few coordinates that matter near the filters: their span, and some directions out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.data.moments.implicit import Covariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.solution import deviations
from sigmapca_cli.solvers.rows.parallel import total
from sigmapca_cli.training.fields import Field

Array = np.ndarray

FEATURES, BESIDE = 64, 16
"""Number of features up to which all directions orthogonal to the span of the filters are probed, and how many of them
are where there are more. With 16 of 59, filters on pictures of digits went on by 0.12 rad from an angle of 0.03."""
TASK = 2
"""Number of blocks of rows that one thread averages the field over by itself."""
HELD = 100_000_000
"""Largest number of entries of rows that are held between two uses; more are read twice."""


@dataclass(frozen=True)
class LocalField:
    """The field of A = B·M, for M (q, k), on rows that are projected on Q (p, m).

    The columns of Q are orthonormal: near the filters first. B puts the columns of `start` (q, k), the filters
    themselves, near the unit vectors. to_directions: from A to the directions of the components, in coordinates of Q.
    C (m, m): covariance of the projected rows.
    """

    field: Field
    Q: Array
    B: Array
    start: Array
    to_directions: Array
    C: Array

    @classmethod
    def of(cls, field: Field, Q: Array, C: Covariance) -> LocalField:
        """Return the field on rows x @ Q, for rows x of covariance C."""
        small = Q.T @ C @ Q
        near, A = field.within(Q, small), field.parameter
        if field.inner:
            B = polar(A)
            return cls(near, Q, B, B.T @ A, Q.T @ field.directions @ np.linalg.pinv(A), small)
        whole = np.eye(Q.shape[1])
        return cls(near, Q, whole, Q.T @ A, whole, small)

    def around(self, M: Array) -> LocalField:
        """Return the same field in coordinates in which the columns of M (q, k) are near the unit vectors."""
        A = self.B @ M
        B = U = polar(A)
        if not self.field.inner:
            B = np.hstack([U, np.linalg.qr(U, mode="complete")[0][:, U.shape[1] :]])
        return replace(self, B=B, start=B.T @ A)

    def deviations(self) -> Array:
        """Return σ (k,) of the components at `start`."""
        return deviations(self.to_directions @ self.B @ self.start, self.C)

    def at(self, M: Array, z: Array) -> Array:
        """Return the field (G, q, k) at M (q, k), averaged over each group of projected rows z (G, b, m)."""
        return self.B.T @ self.field.at(self.B @ M, z)

    def mean(self, M: Array, z: Array, dtype: str = "float64") -> Array:
        """Return the field (q, k) at M (q, k), averaged over the projected rows z (n, m), in the type `dtype`."""

        def part(block: Array) -> tuple[Array]:
            with np.errstate(all="ignore"):  # which a thread of a pool does not have from its caller
                return (len(block) * self.at(M, block[None].astype(dtype))[0],)

        return np.asarray(total(part, z, task=TASK)[0] / len(z))


def polar(A: Array) -> Array:
    """Return the matrix with orthonormal columns nearest to A (q, k), after scaling each column to unit norm."""
    U, _, Vt = np.linalg.svd(
        A / np.maximum(np.linalg.norm(A, axis=0), np.finfo(float).tiny), full_matrices=False
    )
    return np.asarray(U @ Vt)


def frame(W: Array, G: Array, source: Source, inner: bool) -> Array:
    """Return Q (p, m): orthonormal columns near the filters, then directions orthogonal to their span.

    These directions are the part of the gradient outside the span, and the leading axes of the data outside it.
    """
    U = polar(W)
    p, k = U.shape
    r = p - k if p <= FEATURES else min(p - k, BESIDE)
    if inner or r == 0:
        return U
    mean = G.mean(0) / np.maximum(np.linalg.norm(G.mean(0), axis=0), np.finfo(float).tiny)
    known = source.leading_axes(k)
    if known.vectors.shape[1] < k + r:  # of very many features few further axes are at hand
        known = source.leading_axes(k + r)
    axes = known.up_to(k + r)
    basis = U
    for candidates in (mean, axes):
        room = r - (basis.shape[1] - k) if candidates is axes else r // 2
        rest = candidates - basis @ (basis.T @ candidates)
        left, size, _ = np.linalg.svd(rest, full_matrices=False)
        basis = np.hstack([basis, left[:, : min(room, int((size > 1e-3).sum()))]])
    Q = np.linalg.qr(basis)[0]
    return np.asarray(Q * np.sign(np.einsum("pm,pm->m", Q, basis)))


def held_rows(source: Source, parts: list[Array]) -> Callable[[int], Array]:
    """Return a function that gives the rows of the set numbered g; they are read once if they are few."""
    held: dict[int, Array] = {}
    few = sum(len(part) for part in parts) * source.p <= HELD

    def rows(g: int) -> Array:
        if g in held:
            return held[g]
        found = source.take(parts[g])
        if few:
            held[g] = found
        return found

    return rows
