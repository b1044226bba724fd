"""A last polish: W leaves the span of the leading eigenvectors for where the whole gradient vanishes.

The rotation solver answers within span(P) and in the limit of orthonormal W. The loss itself wants a little
more: the part of E[x φ(z_j)] outside the span does not vanish, and WᵀW differs from I by about N_ij/σ_i².
The gradient flow W′ = −G is followed to its end by implicit steps that grow as G falls: at first they follow
the flow, so that what is reached is stable; at last they are Newton's (pseudo-transient continuation, Kelley and
Keyes 1998).
Each step solves its linear equations by GMRES on differences of the gradient, preconditioned in three blocks:
rotations within the span, oblique changes within it, and turns of each column towards the eigenvectors outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.solvers.newton import NewtonResult
from sigmapca_cli.solvers.parallel import BLOCK, spread, threads, total
from sigmapca_cli.sources.base import Source

Array = np.ndarray

LEVELS = (50_000, 200_000)
"""Rows of the two stages: at 50,000 the answer is within 0.003 of that on all half million patches, at 200,000 within
0.0005 (1 − |cos|)."""
LARGEST = 80_000_000
"""Numbers held at most: 320 MB."""
FIRST_TIME = 3.0
"""Length of the first step, in units of the flow's own time."""
LATER_TIME = 30.0
"""The same on more rows: what fewer rows gave is near."""
LONGEST = 0.3
"""Longest step of a column of unit norm."""
KRYLOV = 25
"""Products with the Jacobian a step at most; each is a pass over the rows."""
FLOOR = 0.1
"""A curvature counts as at least this fraction of the sum of its absolute terms."""


@dataclass
class Gradient:
    """E of one pass: G (p, k) tangent gradient and per column σ, m, c, E[zh], E[h′]."""

    G: Array
    sigma: Array
    m: Array
    c: Array
    zh: Array
    dh: Array

    @property
    def scale(self) -> Array:
        """σ_j²(|m_j| + |c_j|) per column: G over it is free of units, about the angle still to go, radians."""
        return self.sigma**2 * (np.abs(self.m) + np.abs(self.c))

    @property
    def size(self) -> Array:
        """‖G_j‖ over its scale, per column."""
        return np.linalg.norm(self.G, axis=0) / self.scale


def gradient(W: Array, C: Array, X: Array, a: Array, derivative: str, block: int = BLOCK) -> Gradient:
    """Return the tangent gradient of the main loss: E[xᵀ((h(z)σWᵀW − y) ⊙ h′(z))] less its part along each column.

    X (n, p) centred rows, W (p, k) unit norm columns, σ exact from C and held constant, h = a·tanh(z/a).
    """
    sigma = np.sqrt(np.einsum("pk,pk->k", W, C @ W))
    Wt, st, at, gram = (np.ascontiguousarray(v, X.dtype) for v in (W, sigma, a, W.T @ W))

    def part(x: Array) -> tuple[Array, ...]:
        z = (x @ Wt) / st
        t = np.tanh(z / at)
        h, true_dh = at * t, 1 - t * t
        dh = true_dh if derivative == "true" else np.ones_like(z)
        phi = (z - h) * dh
        dphi = true_dh * (3 * t * t - 2 * t * z / at) if derivative == "true" else t * t
        G = x.T @ (((h * st) @ gram - z * st) * dh)
        ones = np.ones(len(x), x.dtype)
        return G, ones @ (z * phi), ones @ dphi, ones @ (z * h), ones @ dh

    full, m, c, zh, mean_dh = (value / len(X) for value in total(part, X, block))
    return Gradient(full - W * np.einsum("pk,pk->k", W, full), sigma, m, c, zh, mean_dh)


class Preconditioner:
    """(S/Δt + curvature)⁻¹ at one W, S the scale of each column: two unknowns a pair of columns, one an eigenvector."""

    def __init__(self, W: Array, g: Gradient, axes: tuple[Array, Array], time: float) -> None:
        values, self.vectors = axes
        self.W, self.g = W, g
        self.pinv = np.linalg.pinv(W)
        shift = g.scale / time
        variance = g.sigma**2
        self.q = np.outer(g.zh, g.dh)
        gain = g.m * variance / variance[:, None]
        self.own = gain - g.c + self.q + shift / variance[:, None]
        size = np.abs(gain) + np.abs(g.c) + self.q
        self.determinant = at_least(self.own * self.own.T - self.q * self.q.T, FLOOR * size * size.T)
        near, far = g.m * variance, np.outer(values, g.c)
        self.outside = at_least(near - far + shift, FLOOR * (np.abs(near) + np.abs(far)))

    def __call__(self, V: Array) -> Array:
        """The change of W (p, k) for which the gradient over its scale changes by about V (p, k).

        Inside the span, ΔW = W·E: for each pair the two linear equations dM_ij = (α_ij + q_ij)·E_ij + q_ij·E_ji, and
        (j, i), with M = WᵀG/σ_i². Outside each eigenvector of variance λ has its own, (m_j σ_j² − c_j λ).
        """
        G = V * self.g.scale
        G = G - self.W * np.einsum("pk,pk->k", self.W, G)
        M = self.W.T @ G / self.g.sigma[:, None] ** 2
        E = (self.own.T * M - self.q * M.T) / self.determinant
        np.fill_diagonal(E, 0)
        rest = self.vectors.T @ (G - self.W @ (self.pinv @ G))
        return self.W @ E + self.vectors @ (rest / self.outside)


def at_least(value: Array, floor: Array) -> Array:
    """The value with its sign kept and its size raised to the floor."""
    return np.copysign(np.maximum(np.abs(value), floor), value)


@dataclass
class Stage:
    """The equations on one number of rows."""

    X: Array
    C: Array
    a: Array
    derivative: str

    def at(self, W: Array) -> Gradient:
        """The gradient at the columns of W, scaled to unit norm."""
        return gradient(W / np.linalg.norm(W, axis=0), self.C, self.X, self.a, self.derivative)

    def change(self, W: Array, g: Gradient, axes: tuple[Array, Array], time: float) -> Array:
        """ΔW of an implicit step of length `time`: (1/Δt + J)ΔW = −G/scale, to a tenth of its size."""
        from scipy.sparse.linalg import LinearOperator, gmres

        base, shape, size = g.G / g.scale, W.shape, W.size
        precondition = Preconditioner(W, g, axes, time)

        def product(v: Array) -> Array:
            V = v.reshape(shape)
            step = 1e-4 / max(float(np.abs(v).max()), 1e-300)
            difference = (self.at(W + step * V).G / g.scale - base) / step
            # The gradient does not see the norm of a column; this keeps the equations regular in that direction.
            return (difference + W * np.einsum("pk,pk->k", W, V) + V / time).ravel()

        solution, _ = gmres(
            LinearOperator((size, size), matvec=product, dtype=np.float64),
            -base.ravel(),
            rtol=0.1,
            restart=KRYLOV,
            maxiter=1,
            M=LinearOperator((size, size), matvec=lambda v: precondition(v.reshape(shape)).ravel()),
        )
        step = solution.reshape(shape)
        longest = float(np.linalg.norm(step, axis=0).max())
        return step * min(1.0, LONGEST / max(longest, 1e-300))

    def follow(
        self, W: Array, axes: tuple[Array, Array], time: float, tol: float, most: int
    ) -> tuple[Array, list[float]]:
        """The W of least gradient on the way, and the largest gradient of a column at every step."""
        best, before = W, None
        record: list[float] = []
        for _ in range(most):
            g = self.at(W)
            norm = float(np.linalg.norm(g.size))
            now = float(g.size.max())
            if not np.isfinite(now):
                break
            if not record or now < min(record):
                best = W
            record.append(now)
            if now < tol:
                break
            if before is not None:
                time = min(max(time * min(max(before / norm, 0.5), 2.5), 1.0), 1e6)
            before = norm
            W = W + self.change(W, g, axes, time)
            W = W / np.linalg.norm(W, axis=0)
        return best, record


def polish(
    W: Array,
    C: Array,
    source: Source,
    result: NewtonResult,
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    *,
    tol: float = 1e-3,
    max_iter: int = 40,
    count: int | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Return W (p, k) after the polish, unit norm columns, and what it did.

    That is the size of the gradient before and after, and how far W went. At most 200,000 rows, drawn evenly, take
    part: beyond the sampling error of those the answer is not better than the start. The best W seen is returned, so
    a polish that does not converge does no harm; `polished` says whether it did. `count` threads, by default one a
    core.
    """
    if nonlinearity not in ("scaled_tanh", "tanh"):
        raise InputError(
            f"solver.polish knows tanh and scaled_tanh, not {nonlinearity}; use solver.polish=false"
        )
    a = result.a if nonlinearity == "scaled_tanh" else np.ones_like(result.a)
    start, axes = W, source.principal_axes()
    first = last = float("nan")
    steps = 0
    for rows in stages(source):
        stage = Stage(sample(source, rows), C, a, derivative)
        with threads(count):
            W, record = stage.follow(W, axes, FIRST_TIME if steps == 0 else LATER_TIME, tol, max_iter)
        first = record[0] if steps == 0 and record else first
        last, steps = min(record, default=float("nan")), steps + len(record)
        if not last < tol:
            break
    return W, {
        "polished": bool(last < tol),
        "polish_steps": steps,
        "gradient_before_polish": first,
        "gradient_after_polish": last,
        "polish_cosine": float(np.einsum("pk,pk->k", start, W).min()),
    }


def stages(source: Source) -> list[int]:
    """Numbers of rows, rising; one where there are too few rows for two."""
    most = min(source.n, LEVELS[-1], max(LARGEST // source.p, 1))
    return [rows for rows in LEVELS[:-1] if 2 * rows <= most] + [most]


def sample(source: Source, count: int) -> Array:
    """Centred rows (count, p), one from each of as many equal stretches."""
    index = spread(source.n, count, seed=1) if count < source.n else np.arange(source.n)
    mean = np.asarray(source.covariance()[0], np.float32)
    X = np.empty((count, source.p), np.float32)
    for part in np.array_split(np.arange(count), max(1, count // 2048)):
        X[part] = source.rows(index[part]) - mean
    return X
