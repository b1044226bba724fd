"""Second moments and fourth cumulants of the components: all of them, or streamed where these are too many.

Every moment E[y_a y_b y_c y_d] with a ≤ b ≤ c ≤ d is summed once: k(k + 1)(k + 2)(k + 3)/24 numbers. They are then
stored as a symmetric matrix over pairs (ab), (cd). A rotation of the components is a product of it with a few columns.
Of more components each gradient, and each product of the Hessian with one direction, is a pass over the rows of 2·n·k²
multiplications.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton.jacobian import pack, unfolded, unpack
from sigmapca_cli.solvers.rows.inputs import for_fourth_moments, scaled_to_mean_one, second_moments, split
from sigmapca_cli.solvers.rows.parallel import means, rows_per_block, spaced
from sigmapca_cli.system.row_shards import place

Array = np.ndarray

ENTRIES = 1 << 19
"""Number of products of two components that each thread holds at once."""


@dataclass(frozen=True)
class Point:
    """The moments at one rotation R that F and its derivatives need, for the components y = YR.

    C (k, k): E[y_a y_b]; kappa (k,): fourth cumulants; cross (k, k): cum(y_a, y_j, y_j, y_j).
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
    def of(cls, Y: Array, k: int | None = None) -> Fourth:
        """Build from the rows of Y (n, k), centred, float32 or float64; blocks in that type, their sum in float64.

        k: number of components, where weights of the rows are a further column of Y.

        The columns are divided by their standard deviations first: fourth powers then fit into a float32, whatever
        the unit of the data.
        """
        k = k or Y.shape[1]
        Y = scaled_to_mean_one(Y, k)
        n, (C,) = means(lambda rows: (second_moments(*split(rows, k)),), Y)
        scale = np.sqrt(np.diag(C))
        inverse = (1 / scale).astype(Y.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            return unique_products(for_fourth_moments(*split(rows, k)) * inverse)

        _, sums = means(part, Y, max(ENTRIES // pairs_of(k), 64))
        M = symmetric(tuple(sums), k)
        return cls(C, M * np.outer(pairs(scale), pairs(scale)) - gaussian(C), n)

    def scaled(self, factor: Array) -> Fourth:
        """Return the cumulants of the components times factors (k,)."""
        two = pairs(factor)
        return Fourth(self.C * np.outer(factor, factor), self.K * np.outer(two, two), self.n)

    def diagonal(self, R: Array) -> Array:
        """Return cum(y_a, y_b, (YR)_j, (YR)_j), (P, k), with y_a, y_b columns of Y."""
        return np.asarray(self.K @ expanded(R, R))

    def at(self, R: Array) -> Point:
        """Return the second moments at R, and the cumulants that the gradient needs."""
        D = self.diagonal(R)
        j = np.arange(len(R))
        full = unfolded(D.T)  # (j, a, b)
        cross = R.T @ np.einsum("jab,bj->aj", full, R[:, j])
        return Point(R, R.T @ self.C @ R, cross)

    def shared(self, R: Array) -> Array:
        """Return cum(y_j, y_j, y_a, y_b) as [j, a, b], (k, k, k), for y = YR: the cumulants that the Hessian needs."""
        return np.asarray(R.T @ unfolded(self.diagonal(R).T) @ R)


def pairs_of(k: int) -> int:
    """Return the number of pairs a ≤ b."""
    return k * (k + 1) // 2


def pairs(values: Array) -> Array:
    """Return the products v_a·v_b of pairs a ≤ b, in the order of `numpy.triu_indices`."""
    a, b = np.triu_indices(len(values))
    return np.asarray(values[a] * values[b])


def expanded(U: Array, V: Array) -> Array:
    """Return the coefficients (P, m) of (Yu)(Yv) over the products y_a y_b, a ≤ b, for columns u, v of U, V (k, m)."""
    a, b = np.triu_indices(len(U))
    coefficients = U[a] * V[b]
    coefficients += np.where((a < b)[:, None], U[b] * V[a], 0)
    return np.asarray(coefficients)


def gaussian(C: Array) -> Array:
    """Return C_ab C_cd + C_ac C_bd + C_ad C_bc, (P, P): the fourth moments of Gaussian components."""
    a, b = np.triu_indices(len(C))
    flat = C[a, b]
    return np.asarray(
        np.outer(flat, flat) + C[np.ix_(a, a)] * C[np.ix_(b, b)] + C[np.ix_(a, b)] * C[np.ix_(b, a)]
    )


def unique_products(z: Array) -> tuple[Array, ...]:
    """Return for each j the sums over rows of (z_i z_j)(z_l z_m), i ≤ j ≤ l ≤ m: arrays (j + 1, pairs j ≤ l ≤ m)."""
    m, k = z.shape
    products = np.empty((m, pairs_of(k)), z.dtype)
    offset = offsets(k)
    for j in range(k):
        np.multiply(z[:, j : j + 1], z[:, j:], out=products[:, offset[j] : offset[j] + k - j])
    return tuple((z[:, : j + 1] * z[:, j : j + 1]).T @ products[:, offset[j] :] for j in range(k))


def offsets(k: int) -> Array:
    """Return for each l the index of the pair (l, l), the first of the pairs (l, l), (l, l + 1), …"""
    return np.concatenate([[0], np.cumsum(np.arange(k, 1, -1))])


def symmetric(sums: tuple[Array, ...], k: int) -> Array:
    """Return the moments (P, P) from the sums of `unique_products`: one entry for every order of the four indices."""
    offset, P = offsets(k), pairs_of(k)
    begin = np.concatenate([[0], np.cumsum([(j + 1) * (P - offset[j]) for j in range(k)])])[:-1]
    flat = np.concatenate([part.ravel() for part in sums])
    a, b = np.triu_indices(k)
    M = np.empty((P, P))
    for row in range(P):
        four = np.sort(np.stack([np.full(P, a[row]), np.full(P, b[row]), a, b]), axis=0)
        i, j, low, high = four
        M[row] = flat[begin[j] + i * (P - offset[j]) + offset[low] - offset[j] + high - low]
    return M


@dataclass(frozen=True)
class Streamed:
    """Centred rows Y (n, k) with second moments C (k, k); of a rank, Y holds its share of the n rows.

    Of rows with weights, C has the weights, and Y is w^¼ times the rows: only fourth moments are made of it.
    """

    Y: Array
    C: Array
    n: int

    @classmethod
    def of(cls, Y: Array, count: int | None = None, k: int | None = None) -> Streamed:
        """Take all rows, or one from each of `count` equal stretches; the same rows on every call.

        k: number of components, where weights of the rows are a further column of Y.
        """
        where = place(Y)
        if count is not None and count < where[1]:
            Y = spaced(Y, count, where)
        k = k or Y.shape[1]
        Y = scaled_to_mean_one(Y, k)
        n, (C,) = means(lambda rows: (second_moments(*split(rows, k)),), Y, rows_per_block(k))
        return cls(for_fourth_moments(*split(Y, k)), C, n)

    def at(self, R: Array) -> Point:
        """Return the second moments at R and the cumulants that the gradient needs, as `Fourth.at`."""
        C = R.T @ self.C @ R
        sigma = np.sqrt(np.diag(C))
        M = np.ascontiguousarray(R / sigma, self.Y.dtype)

        def part(rows: Array) -> tuple[Array, ...]:
            z = rows @ M
            return (z.T @ (z * z * z),)

        _, (third,) = means(part, self.Y, rows_per_block(len(R)))
        cross = third * np.outer(sigma, sigma**3) - 3 * C * np.diag(C)
        return Point(R, C, cross)

    def product(self, point: Point, G: Array, s: Array, lam: float) -> Callable[[Array], Array]:
        """Return the function θ ↦ Hθ on pairs i < j, H the Hessian of F at the point, without the blocks of
        `contrast.blocks`."""
        C, k = point.C, len(point.R)
        sigma, symmetric = point.sigma, (G + G.T) / 2
        M = np.ascontiguousarray(point.R / sigma, self.Y.dtype)

        def times(theta: Array) -> Array:
            A = unpack(theta, k).T
            moves = np.ascontiguousarray(sigma[:, None] * A, self.Y.dtype)

            def part(rows: Array) -> tuple[Array, ...]:
                z = rows @ M
                return (z.T @ (z * z * (z @ moves)),)

            _, (fourth,) = means(part, self.Y, rows_per_block(k))
            CA = C @ A
            own = np.diag(CA)  # E[y_j d_j] for d = yA
            shared = fourth * np.outer(sigma, sigma**2) - np.diag(C) * CA - 2 * C * own
            X = 4 * CA * np.diag(C) + 8 * C * own + 12 * lam * s * shared - symmetric @ A
            return pack(X.T - X)

        return times
