"""Newton's equations of all ways together: how far the stationary point is, and whether it is stable.

`curvature` measures the ways one by one; they also act on each other. Here the field is a vector over the ways, and its
Jacobian is known by its products with a direction, from differences of the field. The curvatures of the single ways
precondition it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton.krylov import MatrixFreeJacobian
from sigmapca_cli.training.curvature import Responses, eigenvectors_outside, in_pair
from sigmapca_cli.training.local import LocalField

Array = np.ndarray

DIFFERENCE, ROUNDED, KINKED = 1e-4, 1e-3, 1e-2
"""Length of a difference of the field, in units of the ways: of the hand-written field, which is smooth, in float64 and
in float32, and of those by autograd: of a sum of |y| a short difference sees no row at its kink, and no curvature."""
PRODUCTS = 60
"""Largest number of products with the Jacobian for one step, if there are more than WAYS_SOLVED_WHOLE ways."""
WAYS_SOLVED_WHOLE = 200
"""Number of ways up to which a step may take as many products as there are ways."""
ACCURACY = 0.005
"""Fraction of the field that a step may leave: what is left of it may lie along the ways of least curvature."""
UNSTABLE = 0.1
"""A point is unstable if an eigenvalue of the preconditioned Jacobian is below minus this."""


@dataclass(frozen=True)
class Modes:
    """The coordinates of moves: modes of pairs, and joint moves of the components towards each direction outside.

    pairs (m, 2); basis (m, 2, b) and its inverse (m, b, 2): modes of a pair in terms of its turn and its lean;
    vectors (r, k, k): joint moves in the scale σ_j a_j; unit (r, k): σ of the component that moves most. curvature:
    of all ways, without a unit. norms, sigma (k,), scale (k, k): as in `Responses`.
    """

    pairs: Array
    basis: Array
    inverse: Array
    vectors: Array
    unit: Array
    curvature: Array
    norms: Array
    sigma: Array
    scale: Array

    @classmethod
    def of(cls, found: Responses) -> Modes:
        """Take the eigenvectors of the responses; a pair that has no two real ones keeps its turn and its lean."""
        blocks = found.pairs.mean(0)
        if found.rigid:
            basis = np.tile(np.array([[1.0], [0.0]]), (len(blocks), 1, 1))
            inverse, values = basis.swapaxes(1, 2), blocks[:, 0, :1]
        else:
            found_values, vectors = np.linalg.eig(blocks)
            basis, values = vectors.real.copy(), found_values.real.copy()
            plain = (np.abs(found_values.imag).max(1) > 0) | (np.abs(np.linalg.det(basis)) < 1e-3)
            basis[plain], values[plain] = np.eye(2), np.einsum("mii->mi", blocks)[plain]
            inverse = np.linalg.inv(basis)
        outer, vectors = eigenvectors_outside(found)
        unit = found.sigma[np.abs(vectors / found.sigma[:, None]).argmax(1)]
        curvature = np.concatenate([values.ravel(), outer.ravel()])
        return cls(
            found.moves, basis, inverse, vectors, unit, curvature, found.norms, found.sigma, found.scale
        )

    def of_ways(self, values: Array, rest: object) -> Array:
        """Return for all modes the `values` of the ways (`Curvatures`): of a pair for its soft mode, else `rest`."""
        m = len(self.pairs)
        each = np.full((m, self.basis.shape[2]), rest)
        soft = self.curvature[: each.size].reshape(each.shape).argmin(1)
        each[np.arange(m), soft] = values[:m]
        return np.concatenate([each.ravel(), values[m:]])

    def along(self, G: Array) -> Array:
        """Return the field G (q, k) along each way."""
        i, j = self.pairs.T
        pairs = np.einsum("mbi,mi->mb", self.inverse, in_pair(G, i, j, self.scale))
        scaled = G[len(self.sigma) :] * self.norms / (2 * self.sigma)
        outer = np.einsum("vjm,vj->vm", self.vectors, scaled) / self.unit
        return np.concatenate([pairs.ravel(), outer.ravel()])

    def angles(self, moves: Array) -> Array:
        """Return the moves (q, k) of the columns, radians, for a length along each way."""
        k, b = len(self.sigma), self.basis.shape[2]
        count = len(self.pairs) * b
        turn, lean = np.einsum("mib,mb->im", self.basis, moves[:count].reshape(-1, b))
        i, j = self.pairs.T
        X = np.zeros((k + len(self.vectors), k))
        X[j, i], X[i, j] = lean + turn, lean - turn
        outer = moves[count:].reshape(self.unit.shape) * self.unit
        X[k:] = np.einsum("vjm,vm->vj", self.vectors, outer) / self.sigma
        return X


@dataclass(frozen=True)
class Coupled:
    """The field near A (q, k) with its Jacobian, on the ways `used`.

    field: A -> (q, k), the mean over the rows of the Jacobian; floor: the least curvature of a way that counts in the
    preconditioner, a number or one for each way; difference: length of a difference of the field.
    """

    field: Callable[[Array], Array]
    A: Array
    modes: Modes
    used: Array
    floor: Array | float
    difference: float

    @classmethod
    def over(
        cls,
        local: LocalField,
        rows: Array,
        modes: Modes,
        used: Array,
        floor: Array | float,
        exact: bool = False,
    ) -> Coupled:
        """Average the field over projected rows (n, m), in float32 unless `exact`.

        What rounding adds to a difference is far below the sampling error of rows that stand for others.
        """
        kind, smooth = ("float64", DIFFERENCE) if exact else ("float32", ROUNDED)
        difference = smooth if local.field.cost == 1 else KINKED
        return cls(lambda M: local.mean(M, rows, kind), local.start, modes, used, floor, difference)

    def jacobian(self) -> MatrixFreeJacobian:
        """Return the Jacobian by its products, preconditioned by the curvatures of the single ways."""
        base = self.modes.along(self.field(self.A))[self.used]

        def product(direction: Array) -> Array:
            step = self.difference / max(float(np.abs(direction).max()), 1e-300)
            moved = self.A + self.moved(step * direction) * self.modes.norms
            return (self.modes.along(self.field(moved))[self.used] - base) / step

        D = np.maximum(np.abs(self.modes.curvature), self.floor)[self.used]
        most = max(PRODUCTS, min(len(D), WAYS_SOLVED_WHOLE))
        return MatrixFreeJacobian(product, np.sqrt(D), accuracy=ACCURACY, most=most)

    def largest(self, direction: Array) -> Array:
        """Return the pair (1, 2) of a way, numbered as in `Curvatures`, that has the largest part of a direction."""
        whole = np.zeros(len(self.used))
        whole[self.used] = np.abs(direction)
        each, b = len(self.modes.pairs) * self.modes.basis.shape[2], self.modes.basis.shape[2]
        place = int(whole.argmax())
        if place < each:
            return self.modes.pairs[place // b][None]
        k = len(self.modes.sigma)
        way = self.modes.vectors[(place - each) // k, :, (place - each) % k]
        return np.array([[-1, np.abs(way / self.modes.sigma).argmax()]])

    def moved(self, direction: Array) -> Array:
        """Return the moves (q, k) of the columns, radians, for lengths along the ways that are used."""
        whole = np.zeros(len(self.used))
        whole[self.used] = direction
        return self.modes.angles(whole)


def newton_step(system: Coupled, J: MatrixFreeJacobian, along: Array) -> tuple[Array, Array]:
    """Return Newton's step (q, k) for the field `along` all ways, and its length for each component (k,), radians.

    What the products leave of the field adds to the length as if the ways did not act on each other.
    """
    space, y = J.solved(along[system.used])
    left = -space.H @ y
    left[0] += space.length
    step = system.moved((y @ space.V[: space.m]) / J.root)
    rest = system.moved(np.abs(left @ space.V[: len(left)]) / J.root)
    return step, np.asarray(np.sqrt(np.square(step).sum(0) + np.square(rest).sum(0)))
