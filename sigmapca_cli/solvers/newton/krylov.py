"""Newton's equations for many pairs, solved in a Krylov space: only products of J with a direction are computed.

The variables are scaled: θ̃ = D^½θ, S̃ = D^−½S. If the components hardly depend on each other, J̃ = D^−½JD^−½ is close
to the identity and a few products suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers.newton import steps

Array = np.ndarray

MOST_PRODUCTS = 40
"""Largest number of products for one step."""
ACCURACY = 0.05
"""Fraction of the residual that a step may leave. More accuracy does not pay: J is averaged over part of the rows."""
SELDOM = 8
"""Beyond MOST_PRODUCTS the residual is computed after each so many: its least squares take longer than a product."""
LARGEST_SPECTRUM = 60
"""Largest number of products for one check of stability."""
EVERY = 4
"""Number of products after which the eigenvalues are computed again."""


class Arnoldi:
    """An orthonormal basis V (m + 1, pairs) of start, B·start, B²·start, … and H (m + 1, m) with B·V[:m]ᵀ = VᵀH."""

    def __init__(self, product: Callable[[Array], Array], start: Array, most: int) -> None:
        self.product, self.m = product, 0
        most = min(most, len(start))
        self.length = float(np.linalg.norm(start))
        self.V, self.whole = np.zeros((most + 1, len(start))), np.zeros((most + 1, most))
        self.V[0] = start / max(self.length, np.finfo(np.float64).tiny)

    @property
    def H(self) -> Array:
        """(m + 1, m)."""
        return self.whole[: self.m + 1, : self.m]

    def extend(self) -> bool:
        """Compute one more product; return False once the space holds the answer or is full."""
        m = self.m
        if m == self.whole.shape[1]:
            return False
        new, basis = self.product(self.V[m]), self.V[: m + 1]
        size = float(np.linalg.norm(new))
        for _ in range(2):  # orthogonalise twice, against rounding error
            part = basis @ new
            new = new - part @ basis
            self.whole[: m + 1, m] += part
        left = float(np.linalg.norm(new))
        self.whole[m + 1, m], self.m = left, m + 1
        if left <= 1e-12 * size:
            return False
        self.V[m + 1] = new / left
        return True


@dataclass(frozen=True)
class MatrixFreeJacobian:
    """J = D^½(J̃ + Σ uvᵀ)D^½, given only by its products; u and v come from Broyden's corrections.

    product: θ ↦ Jθ before the corrections, or None for J̃ = identity, J ≈ D; root (pairs,): D^½; accuracy: fraction
    of the residual that a step may leave; most: largest number of products for it, and one more for each correction.
    """

    product: Callable[[Array], Array] | None
    root: Array
    changes: tuple[tuple[Array, Array], ...] = ()
    accuracy: float = ACCURACY
    most: int = MOST_PRODUCTS

    def scaled(self, v: Array) -> Array:
        """Return (J̃ + Σ uvᵀ)·v."""
        image = v if self.product is None else self.product(v / self.root) / self.root
        for u, w in self.changes:
            image = image + u * (w @ v)
        return image

    def newton(self, S: Array) -> Array:
        """Return θ = −J⁻¹S by GMRES."""
        space, y = self.solved(S)
        return (y @ space.V[: space.m]) / self.root

    def newton_and_guarded(self, S: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the Newton step, and a function that computes the guarded step in the same Krylov space.

        The guarded step is `steps.guarded_step` for the projection of J̃ on the space.
        """
        space, y = self.solved(S)
        V, H = space.V[: space.m], space.H[: space.m]

        def guarded() -> Array:
            first = np.zeros(space.m)
            first[0] = space.length
            return (np.linalg.solve(steps.positive(H), first) @ V) / self.root

        return (y @ V) / self.root, guarded

    def guarded(self, S: Array) -> Array:
        """Return the guarded step alone."""
        return self.newton_and_guarded(S)[1]()

    def corrected(self, change: Array, theta: Array) -> MatrixFreeJacobian:
        """Return J with Broyden's rank-one correction: the smallest change of J̃ that maps the last step θ to ΔS."""
        v = self.root * theta
        length = max(float(np.linalg.norm(v)), 1e-300)
        u = (change / self.root - self.scaled(v)) / length
        return replace(self, changes=(*self.changes, (u, v / length)))

    def kept(self, S: Array) -> MatrixFreeJacobian:
        """Return a J whose products take no pass over rows: J̃ in the Krylov space of S, the identity outside it.

        The space is the one that a Newton step from S needs.
        """
        space = self.solved(S)[0]
        V, change = space.V[: space.m], space.H[: space.m] - np.eye(space.m)

        def product(theta: Array) -> Array:
            v = self.root * theta
            return np.asarray(self.root * (v + (change @ (V @ v)) @ V))

        return replace(self, product=product, changes=())

    def solved(self, S: Array) -> tuple[Arnoldi, Array]:
        """Return a Krylov space in which J̃θ̃ = −S̃ is solved, and the solution y (m,): θ̃ = y·V[:m]."""
        space = Arnoldi(self.scaled, -S / self.root, self.most + len(self.changes))
        while True:
            more = space.extend()
            if more and space.m > MOST_PRODUCTS and space.m % SELDOM:
                continue
            first = np.zeros(space.m + 1)
            first[0] = space.length
            y = np.linalg.lstsq(space.H, first, rcond=None)[0]
            if not more or np.linalg.norm(first - space.H @ y) <= self.accuracy * space.length:
                return space, y

    def unstable(self, bound: float) -> Array | None:
        """Return a direction along which the flow θ' = −S leaves this stationary point, scaled to largest entry 1.

        Return None if no eigenvalue of J̃ has a real part below −bound.
        """
        start = np.random.default_rng(0).normal(size=len(self.root))
        space, more = Arnoldi(self.scaled, start, LARGEST_SPECTRUM), True
        while more:
            more = all(space.extend() for _ in range(EVERY))
            values, vectors = np.linalg.eig(space.H[: space.m])
            worst = int(values.real.argmin())
            error = space.H[-1, -1] * abs(vectors[-1, worst])
            if error < max(bound, abs(values[worst].real)) / 4:
                break
        if values[worst].real > -bound:
            return None
        direction = (vectors[:, worst].real @ space.V[: space.m]) / self.root
        return direction / direction[np.abs(direction).argmax()]
