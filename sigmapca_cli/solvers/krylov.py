"""Newton's equations for many pairs, in a Krylov space: J is only ever multiplied with a direction.

All is done in the scaled variables θ̃ = D^½θ, S̃ = D^−½S, in which J̃ = D^−½JD^−½ is near the identity where components
hardly depend on each other: a few products suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sigmapca_cli.solvers import steps

Array = np.ndarray

LARGEST = 40
"""Products that one step is worth."""
ACCURACY = 0.05
"""Share of the residual that a step may leave: the rows that J is averaged over are not all rows anyway."""
LARGEST_SPECTRUM = 60
"""Products that a check of stability is worth."""
EVERY = 4
"""Products between two looks at the eigenvalues found so far."""


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
        """One more product; False once the space holds the answer, or is full."""
        m = self.m
        if m == self.whole.shape[1]:
            return False
        new, basis = self.product(self.V[m]), self.V[: m + 1]
        size = float(np.linalg.norm(new))
        for _ in range(2):  # once more, against rounding
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
class Free:
    """J = D^½(J̃ + Σ uvᵀ)D^½, J̃ from `product` (None: the identity, J ≈ D), u and v from Broyden's corrections."""

    product: Callable[[Array], Array] | None
    root: Array
    changes: tuple[tuple[Array, Array], ...] = ()

    def scaled(self, v: Array) -> Array:
        """(J̃ + Σ uvᵀ)·v."""
        found = v if self.product is None else self.product(v / self.root) / self.root
        for u, w in self.changes:
            found = found + u * (w @ v)
        return found

    def newton(self, S: Array) -> Array:
        """θ = −J⁻¹S to the accuracy that pays (GMRES)."""
        space, y = self._solved(S)
        return (y @ space.V[: space.m]) / self.root

    def both(self, S: Array) -> tuple[Array, Callable[[], Array]]:
        """Newton's step, and the guarded one from the same space where it is wanted.

        The guarded step is `steps.guarded_step` for the projection of J̃ on the space.
        """
        space, y = self._solved(S)
        V, H = space.V[: space.m], space.H[: space.m]

        def guarded() -> Array:
            first = np.zeros(space.m)
            first[0] = space.length
            return (np.linalg.solve(steps.positive(H), first) @ V) / self.root

        return (y @ V) / self.root, guarded

    def guarded(self, S: Array) -> Array:
        """The guarded step alone."""
        return self.both(S)[1]()

    def corrected(self, change: Array, theta: Array) -> Free:
        """With Broyden's rank-one correction: the least change of J̃ that explains what the last step did to S."""
        v = self.root * theta
        length = max(float(np.linalg.norm(v)), 1e-300)
        u = (change / self.root - self.scaled(v)) / length
        return replace(self, changes=(*self.changes, (u, v / length)))

    def _solved(self, S: Array) -> tuple[Arnoldi, Array]:
        space = Arnoldi(self.scaled, -S / self.root, LARGEST)
        while True:
            more = space.extend()
            first = np.zeros(space.m + 1)
            first[0] = space.length
            y = np.linalg.lstsq(space.H, first, rcond=None)[0]
            if not more or np.linalg.norm(first - space.H @ y) <= ACCURACY * space.length:
                return space, y

    def unstable(self, bound: float) -> Array | None:
        """A direction in which the flow θ' = −S leaves, largest entry 1; None if no eigenvalue of J̃ is below −bound."""
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
