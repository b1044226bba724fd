"""Second moments and fourth cumulants of all components, from one pass over the rows.

Every moment E[y_a y_b y_c y_d] with a ≤ b ≤ c ≤ d is added up once: k(k + 1)(k + 2)(k + 3)/24 numbers. Then they stand
in a symmetric matrix over pairs (ab), (cd), in which a rotation of the components is a product with a few columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.parallel import total

Array = np.ndarray

ENTRIES = 1 << 19
"""Products of two components that are held at once, for each thread."""


@dataclass(frozen=True)
class Point:
    """What F and its derivatives need at one rotation R, for the components y = YR.

    C (k, k): E[y_a y_b]; kappa (k,): fourth cumulant of each; cross (k, k): cum(y_a, y_j, y_j, y_j).
    """

    R: Array
    C: Array
    cross: Array

    @property
    def kappa(self) -> Array:
        """(k,) cum₄(y_j)."""
        return np.diag(self.cross)

    @property
    def sigma(self) -> Array:
        """(k,) standard deviations."""
        return np.sqrt(np.diag(self.C))


@dataclass(frozen=True)
class Fourth:
    """Fourth cumulants of k centred components as a symmetric matrix K over pairs a ≤ b, (P, P), P = k(k + 1)/2.

    K[(ab), (cd)] = E[y_a y_b y_c y_d] − C_ab C_cd − C_ac C_bd − C_ad C_bc; C (k, k) their second moments;
    n: rows.
    """

    C: Array
    K: Array
    n: int

    @classmethod
    def of(cls, Y: Array) -> Fourth:
        """From the rows of Y (n, k), centred, float32 or float64; blocks in that type, their sum in float64.

        The columns are divided by their deviations first: fourth powers then fit into a float32 whatever the units are.
        """
        n, k = Y.shape
        (C,) = total(lambda rows: (rows.T @ rows,), Y)
        scale = np.sqrt(np.diag(C) / n)
        inverse = (1 / scale).astype(Y.dtype)
        sums = total(lambda rows: unique_products(rows * inverse), Y, max(ENTRIES // pairs_of(k), 64))
        M = symmetric(sums, k) / n
        return cls(C / n, M * np.outer(pairs(scale), pairs(scale)) - gaussian(C / n), n)

    def diagonal(self, R: Array) -> Array:
        """(P, k): cum(y_a, y_b, (YR)_j, (YR)_j), with a, b components of Y."""
        return np.asarray(self.K @ expanded(R, R))

    def at(self, R: Array) -> Point:
        """Second moments and the cumulants of the gradient at R."""
        D = self.diagonal(R)
        j = np.arange(len(R))
        full = unfolded(D.T)  # (j, a, b)
        cross = R.T @ np.einsum("jab,bj->aj", full, R[:, j])
        return Point(R, R.T @ self.C @ R, cross)

    def shared(self, R: Array) -> Array:
        """(k, k, k): [j, a, b] = cum(y_j, y_j, y_a, y_b) for y = YR, what the Hessian needs."""
        return np.asarray(R.T @ unfolded(self.diagonal(R).T) @ R)


def pairs_of(k: int) -> int:
    """Number of pairs a ≤ b."""
    return k * (k + 1) // 2


def pairs(values: Array) -> Array:
    """The products v_a·v_b of pairs a ≤ b, in the order of `numpy.triu_indices`."""
    a, b = np.triu_indices(len(values))
    return np.asarray(values[a] * values[b])


def expanded(U: Array, V: Array) -> Array:
    """(P, m): the coefficients of (Yu)(Yv) over the products y_a y_b, a ≤ b, for columns u, v of U, V (k, m)."""
    a, b = np.triu_indices(len(U))
    found = U[a] * V[b]
    found += np.where((a < b)[:, None], U[b] * V[a], 0)
    return np.asarray(found)


def unfolded(rows: Array) -> Array:
    """(…, P) as (…, k, k), symmetric in the last two."""
    k = int(np.sqrt(2 * rows.shape[-1]))
    a, b = np.triu_indices(k)
    full = np.empty((*rows.shape[:-1], k, k))
    full[..., a, b] = full[..., b, a] = rows
    return full


def gaussian(C: Array) -> Array:
    """(P, P): C_ab C_cd + C_ac C_bd + C_ad C_bc, the fourth moments of Gaussian components."""
    a, b = np.triu_indices(len(C))
    flat = C[a, b]
    return np.asarray(
        np.outer(flat, flat) + C[np.ix_(a, a)] * C[np.ix_(b, b)] + C[np.ix_(a, b)] * C[np.ix_(b, a)]
    )


def unique_products(z: Array) -> tuple[Array, ...]:
    """For each j the sums over rows of (z_i z_j)(z_l z_m), i ≤ j ≤ l ≤ m: arrays (j + 1, pairs l ≤ m from j on)."""
    m, k = z.shape
    products = np.empty((m, pairs_of(k)), z.dtype)
    offset = offsets(k)
    for j in range(k):
        np.multiply(z[:, j : j + 1], z[:, j:], out=products[:, offset[j] : offset[j] + k - j])
    return tuple((z[:, : j + 1] * z[:, j : j + 1]).T @ products[:, offset[j] :] for j in range(k))


def offsets(k: int) -> Array:
    """Where the pairs (l, l), (l, l + 1), … begin."""
    return np.concatenate([[0], np.cumsum(np.arange(k, 1, -1))])


def symmetric(sums: tuple[Array, ...], k: int) -> Array:
    """(P, P) from the sums of `unique_products`: the entry of every order of the four indices."""
    offset, P = offsets(k), pairs_of(k)
    begin = np.concatenate([[0], np.cumsum([part.size for part in sums])])[:-1]
    flat = np.concatenate([part.ravel() for part in sums])
    a, b = np.triu_indices(k)
    M = np.empty((P, P))
    for row in range(P):
        four = np.sort(np.stack([np.full(P, a[row]), np.full(P, b[row]), a, b]), axis=0)
        i, j, low, high = four
        M[row] = flat[begin[j] + i * (P - offset[j]) + offset[low] - offset[j] + high - low]
    return M
