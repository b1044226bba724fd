"""Leading eigenpairs of a covariance that is known by its products only.

Few rows: from the Gram matrix of the rows, exact to rounding. Else block Lanczos: the space of S, CS, C²S, … holds the
leading eigenvectors after a few products. In both cases the residual ‖Cv − λv‖ of each pair is computed. |λ − λ̃| is at
most the residual, and at most its square over the distance to the other eigenvalues.
Source: Golub and Underwood (1977), The block Lanczos method for computing eigenvalues; Musco and Musco (2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Product = Callable[[Array], Array]

SPARE = 16
"""Vectors beyond k that are iterated with the others: the k-th pair converges by its distance to those left out."""
SPARE_ENTRIES = 1 << 22
"""Entries of the vectors beyond k where these are not needed to converge: 32 MB."""
TOLERANCE = 1e-9
"""Bound of the estimated relative error of the eigenvalues."""
VECTOR_TOLERANCE = 1e-10
"""The same for products with one vector at a time, where a digit more costs little."""
MOST_RESTARTS = 200
"""Largest number of restarts of these."""
CHECKS = 3
"""Number of products with a block that look for an eigenvalue that was passed over."""
BESIDE_ROUNDING = 1e-12
"""Share of the largest eigenvalue up to which another one may be rounding."""
MISSED = 1e-8
"""Relative difference from the last eigenvalue that counts as passed over."""
MOST_PRODUCTS = 60
"""Largest number of products with a block; each is a pass over the rows."""
DEPENDENT = 1e-5
"""Sine of the angle between a column and the columns before it, below which Cholesky's factor loses digits."""
SLICE = 1 << 15
"""Rows of the vectors whose products are made at once."""
MOST_BLOCKS = 8
"""Largest number of blocks held, (p, k + 16) each; then the space is condensed to its best half."""


@dataclass(frozen=True)
class Pairs:
    """values (m,), decreasing; vectors (p, m) orthonormal; residual (m,): ‖Cv − λv‖; products: how many were made.

    error: bound of the relative error of the eigenvalues that were asked for. image (p, m): C · vectors, or None.
    """

    values: Array
    vectors: Array
    residual: Array
    products: int
    error: float
    image: Array | None = None


def spare_of(p: int) -> int:
    """Return how many vectors of p features are computed beyond those asked for: fewer where each takes much memory."""
    return min(SPARE, max(2, SPARE_ENTRIES // p))


def error_of(values: Array, residual: Array, k: int) -> float:
    """Return a bound of the relative error of the first k of m Ritz values (m,), from their residuals (m,).

    |λ_j − λ̃_j| ≤ r_j; and ≤ Σ_{i ≤ s} r_i²/(λ̃_j − λ̃_{s+1} − r_{s+1}) for every s ≥ j that leaves a gap, since the first
    s pairs are the eigenpairs of a matrix that differs from C by their residuals only (Kato and Temple's bound).
    """
    bound = residual[:k].copy()
    squares = np.cumsum(np.square(residual))
    for j in range(k):
        gap = values[j] - values[j + 1 :] - residual[j + 1 :]
        open_ = gap > 0
        if open_.any():
            bound[j] = min(bound[j], float((squares[j:-1][open_] / gap[open_]).min()))
    relative = bound / np.maximum(values[:k], np.finfo(np.float64).tiny)
    return float(relative.max(initial=float(np.finfo(np.float64).eps)))


def orthonormal(A: Array, basis: Array | None = None) -> Array:
    """Return orthonormal columns of the span of A (p, b) outside the span of the basis; dependent ones are left out."""
    size = np.linalg.norm(A, axis=0)
    A = A[:, size > 0] / size[size > 0]
    for _ in range(2):  # twice, against rounding error
        if basis is not None:
            A = A - basis @ (basis.T @ A)
        if not A.shape[1]:
            return A
        values, vectors = np.linalg.eigh(A.T @ A)
        keep = values > 1e-14 * values[-1]
        keep &= values > 1e-26
        A = A @ (vectors[:, keep] / np.sqrt(values[keep]))
    return A


def lanczos(
    product: Product,
    p: int,
    k: int,
    most: int = MOST_PRODUCTS,
    tol: float = TOLERANCE,
    spare: int = SPARE,
) -> Pairs:
    """Return the leading k eigenpairs, and `spare` less exact ones, of a covariance C (p, p) by products CW.

    The start is the same at every call. It ends when the bound of the relative error is below `tol`, or after `most`
    products: `error` says what was reached.
    """
    b = min(k + spare, p)
    block = orthonormal(np.random.default_rng(0).standard_normal((p, b)))
    V, CV = block, product(block)
    count = 1
    while True:
        values, turn = ritz(V, CV)
        best = V @ turn[:, : 2 * b]
        rest = CV @ turn[:, : 2 * b] - best * values[: 2 * b]
        residual = np.linalg.norm(rest, axis=0)
        error = error_of(values[: 2 * b], residual, min(k, V.shape[1]))
        if error <= tol or count >= most or V.shape[1] >= p:
            break
        if V.shape[1] > (MOST_BLOCKS - 1) * b:
            # Condensed to the best 2b vectors, whose residuals span the next block.
            V, CV = best, CV @ turn[:, : 2 * b]
            block = orthonormal(rest[:, :b], V)
        else:
            block = orthonormal(CV[:, -block.shape[1] :], V)
        if not block.shape[1]:
            break
        V, CV, count = np.hstack([V, block]), np.hstack([CV, product(block)]), count + 1
    return Pairs(values[:b], orthonormal_basis(best[:, :b]), residual[:b], count, error)


def by_vectors(vector_product: Product, product: Product, p: int, k: int) -> tuple[Pairs, Pairs] | None:
    """Return the leading k + 2 eigenpairs by products with one vector at a time, and further ones that are less exact.

    None where they do not converge, or where the further ones show that a larger eigenvalue was passed over: one vector
    at a time may miss a multiple one. vector_product: v (p,) ↦ Cv (p,). ARPACK makes fewer products with a vector than
    `lanczos` does with the columns of its blocks. So it is faster where each column costs the same, as with sparse rows
    in memory, and slower where each product reads a file.
    Source: Lehoucq, Sorensen and Yang (1998), ARPACK users' guide.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    C = LinearOperator((p, p), matvec=lambda v: vector_product(v.ravel()), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(p)
    try:
        _, vectors = eigsh(C, k + 2, which="LA", v0=start, tol=VECTOR_TOLERANCE, maxiter=MOST_RESTARTS)
    except ArpackError:  # not converged, or the space of the start is exhausted
        return None
    pairs = polished(product, np.ascontiguousarray(vectors[:, ::-1]), k)
    further = beyond(product, pairs)
    missed = bool((further.values[:1] > pairs.values[-1] * (1 + MISSED)).any())
    return None if missed else (pairs, further)


def beyond(product: Product, pairs: Pairs) -> Pairs:
    """Return some eigenpairs of C − VΛVᵀ above 0, by a few products: their values are lower bounds of those of C."""
    V, values = pairs.vectors, pairs.values

    def deflated(W: Array) -> Array:
        return np.asarray(product(W) - V @ (values[:, None] * (V.T @ W)))

    found = lanczos(deflated, len(V), 1, most=CHECKS, spare=spare_of(len(V)))
    above = found.values > BESIDE_ROUNDING * values[0]
    vectors = found.vectors[:, above]
    vectors = orthonormal_basis(vectors - V @ (V.T @ vectors)) if above.any() else vectors
    return Pairs(found.values[above], vectors, found.residual[above], found.products, found.error)


def ritz(V: Array, CV: Array) -> tuple[Array, Array]:
    """Return the Ritz values (m,), decreasing, in the span of V (p, m), and their vectors in its coordinates (m, m)."""
    T = V.T @ CV
    values, turn = np.linalg.eigh((T + T.T) / 2)
    return values[::-1], turn[:, ::-1]


def orthonormal_basis(V: Array) -> Array:
    """Return nearly orthonormal columns V (p, m), orthonormal to the last digits; each stays near itself.

    V ↦ V R⁻¹ with VᵀV = RᵀR, twice: two products instead of a QR decomposition, which takes longer for many rows.
    Columns that are too dependent for it go through the QR decomposition. `orthonormal` mixes the columns, and leaves
    dependent ones out.
    Source: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya (2015), Roundoff error analysis of the CholeskyQR2 algorithm.
    """
    Q = V.copy()
    for _ in range(2):
        try:
            R = np.linalg.cholesky(Q.T @ Q).T
        except np.linalg.LinAlgError:
            return orthonormal_by_qr(V)
        if np.diag(R).min() <= DEPENDENT * np.diag(R).max():
            return orthonormal_by_qr(V)
        turn = np.linalg.inv(R)
        for part in slices(len(Q)):
            Q[part] = Q[part] @ turn
    return Q


def orthonormal_by_qr(V: Array) -> Array:
    """Return V (p, m), made orthonormal from its first column to its last."""
    Q, R = np.linalg.qr(V)
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))


def slices(p: int) -> Iterator[slice]:
    """Return slices of p rows, a product of which needs little new memory."""
    return (slice(start, start + SLICE) for start in range(0, p, SLICE))


def polished(product: Product, V: Array, k: int) -> Pairs:
    """Return the Ritz pairs in the span of V (p, m), which holds the leading k eigenvectors, by one product."""
    V = orthonormal_basis(V)
    CV = product(V)
    values, turn = ritz(V, CV)
    squares = np.zeros(len(values))
    for part in slices(len(V)):
        V[part], CV[part] = V[part] @ turn, CV[part] @ turn
        squares += np.square(CV[part] - V[part] * values).sum(axis=0)
    residual = np.sqrt(squares)
    return Pairs(values, V, residual, 1, error_of(values, residual, k), CV)
