"""Polish: from the answer within the span of the leading eigenvectors to a stationary point of the whole gradient.

The rotation solver answers within span(P) and in the limit of orthonormal W. At that answer the gradient of the loss
is not 0: the part of E[x φ(z_j)] outside the span does not vanish, and WᵀW differs from I by about N_ij/σ_i².
The gradient flow W′ = −G is followed to its end by implicit steps that grow as G decreases. The first steps follow
the flow, so that the end point is stable; the last ones are Newton steps (pseudo-transient continuation, Kelley and
Keyes 1998). Each step solves its linear equations by GMRES on differences of the gradient, preconditioned in three
blocks: rotations within the span, oblique changes within it, and rotations of each column towards the eigenvectors
outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.data.moments.implicit import Axes, Covariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.methods.solution import deviations, pseudoinverse
from sigmapca_cli.solvers.newton.solve import NewtonResult
from sigmapca_cli.solvers.rows.parallel import BLOCK_ROWS, means, threads
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import agreed, own_of

Array = np.ndarray

LEVELS = (50_000, 200_000)
"""Numbers of rows of the two stages. At 50,000 rows 1 − |cos| to the answer on all half million patches is at most
0.003, at 200,000 rows 0.0005."""
HELD_ENTRIES = 80_000_000
"""Largest number of entries of the rows that are held: 320 MB."""
FIRST_TIME = 3.0
"""Length Δt of the first step, in the unit of time of the flow W′ = −G/scale."""
LATER_TIME = 30.0
"""The same in the second stage, which starts close to its answer."""
LONGEST = 0.3
"""Largest norm of the step of a column of unit norm."""
KRYLOV = 25
"""Largest number of products with the Jacobian in a step; each is a pass over the rows."""
FLOOR = 0.1
"""A curvature counts as at least this fraction of the sum of its absolute terms."""


@dataclass
class Gradient:
    """Means over the rows from one pass: tangent gradient G (p, k), and per column, (k,): σ, m, c, E[zh], E[h′]."""

    G: Array
    sigma: Array
    m: Array
    c: Array
    zh: Array
    dh: Array

    @property
    def scale(self) -> Array:
        """σ_j²(|m_j| + |c_j|), (k,): G divided by it has no unit; it is about the angle to the solution, radians."""
        return self.sigma**2 * (np.abs(self.m) + np.abs(self.c))

    @property
    def size(self) -> Array:
        """‖G_j‖ divided by the scale of the column, (k,)."""
        return np.linalg.norm(self.G, axis=0) / self.scale


def gradient(
    W: Array, C: Covariance, X: Array, a: Array, derivative: str, block: int = BLOCK_ROWS
) -> Gradient:
    """Return the tangent gradient of the main loss: E[xᵀ((h(z)σWᵀW − y) ⊙ h′(z))] less its part along each column.

    X (n, p) centred rows, W (p, k) unit norm columns, σ exact from C and held constant, h = a·tanh(z/a).
    """
    sigma = deviations(W, C)
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

    full, m, c, zh, mean_dh = means(part, X, block)[1]
    return Gradient(full - W * np.einsum("pk,pk->k", W, full), sigma, m, c, zh, mean_dh)


class Preconditioner:
    """(S/Δt + curvature)⁻¹ at one W, with S the scale of each column.

    There are two unknowns per pair of columns, and one per column and eigenvector outside the span.
    """

    def __init__(self, W: Array, g: Gradient, axes: Axes, time: float) -> None:
        self.vectors = axes.vectors
        values = axes.values[: self.vectors.shape[1]]
        self.W, self.g = W, g
        self.pinv = pseudoinverse(W)
        shift = g.scale / time
        variance = g.sigma**2
        self.q = np.outer(g.zh, g.dh)
        gain = g.m * variance / variance[:, None]
        self.own = gain - g.c + self.q + shift / variance[:, None]
        size = np.abs(gain) + np.abs(g.c) + self.q
        self.determinant = raise_to_floor(self.own * self.own.T - self.q * self.q.T, FLOOR * size * size.T)
        near, far = g.m * variance, np.outer(values, g.c)
        self.outside = raise_to_floor(near - far + shift, FLOOR * (np.abs(near) + np.abs(far)))
        unknown = len(W) - len(values)
        # Of many features only the leading axes are known: the others count with their mean variance.
        self.beyond = None
        if unknown:
            far = g.c * max(axes.total - float(values.sum()), 0.0) / unknown
            self.beyond = raise_to_floor(near - far + shift, FLOOR * (np.abs(near) + np.abs(far)))

    def __call__(self, V: Array) -> Array:
        """Return the change of W (p, k) that changes the gradient, divided by its scale, by about V (p, k).

        Inside the span, ΔW = W·E: each pair has two linear equations, dM_ij = (α_ij + q_ij)·E_ij + q_ij·E_ji and the
        same for (j, i), with M = WᵀG/σ_i². Outside, an eigenvector of variance λ has the curvature (m_j σ_j² − c_j λ).
        """
        G = V * self.g.scale
        G = G - self.W * np.einsum("pk,pk->k", self.W, G)
        M = self.W.T @ G / self.g.sigma[:, None] ** 2
        E = (self.own.T * M - self.q * M.T) / self.determinant
        np.fill_diagonal(E, 0)
        outer = G - self.W @ (self.pinv @ G)
        rest = self.vectors.T @ outer
        step = self.W @ E + self.vectors @ (rest / self.outside)
        return step if self.beyond is None else step + (outer - self.vectors @ rest) / self.beyond


def raise_to_floor(value: Array, floor: Array) -> Array:
    """Return the value with its sign and at least the absolute value `floor`."""
    return np.copysign(np.maximum(np.abs(value), floor), value)


@dataclass
class Stage:
    """The equations on one subset of the rows, X (n, p) centred."""

    X: Array
    C: Covariance
    a: Array
    derivative: str

    def at(self, W: Array) -> Gradient:
        """Return the gradient at W (p, k) with its columns scaled to unit norm."""
        return gradient(W / np.linalg.norm(W, axis=0), self.C, self.X, self.a, self.derivative)

    def change(self, W: Array, g: Gradient, axes: Axes, time: float) -> Array:
        """Return ΔW (p, k) of an implicit step of length Δt = `time`: (1/Δt + J)ΔW = −G/scale, to 10 % residual."""
        from scipy.sparse.linalg import LinearOperator, gmres

        base, shape, size = g.G / g.scale, W.shape, W.size
        precondition = Preconditioner(W, g, axes, time)

        def product(v: Array) -> Array:
            V = v.reshape(shape)
            step = 1e-4 / max(float(np.abs(v).max()), 1e-300)
            difference = (self.at(W + step * V).G / g.scale - base) / step
            # the gradient does not depend on the norm of a column; the second term keeps the equations regular there
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

    def follow_flow(
        self, W: Array, axes: Axes, time: float, tol: float, most: int
    ) -> tuple[Array, list[float]]:
        """Follow the flow from W for `most` steps at most.

        Return the W of smallest gradient on the way, and at every step the largest gradient of a column.
        """
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
            W = agreed(W / np.linalg.norm(W, axis=0))
        return best, record


def polish(
    W: Array,
    C: Covariance,
    source: Source,
    result: NewtonResult,
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    *,
    tol: float = 1e-3,
    max_iter: int = 40,
    count: int | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Return W (p, k) after the polish, unit norm columns, and facts: gradient before and after, |cos| to the start.

    At most 200,000 rows take part, spaced evenly: differences below their sampling error are no improvement. The best
    W seen is returned, so a polish that does not converge does no harm; the fact `polished` is whether it converged.
    `count`: number of threads, by default one per core. Raise InputError if the nonlinearity has no polish.
    """
    if nonlinearity not in ("scaled_tanh", "tanh"):
        raise InputError(
            f"solver.polish=true works with tanh and scaled_tanh, not {nonlinearity}; set solver.polish=false"
        )
    a = result.a if nonlinearity == "scaled_tanh" else np.ones_like(result.a)
    start, axes = W, source.leading_axes(W.shape[1])
    first = last = float("nan")
    steps = 0
    for rows in stages(source):
        stage = Stage(sample(source, rows), C, a, derivative)
        with threads(count):
            W, record = stage.follow_flow(W, axes, FIRST_TIME if steps == 0 else LATER_TIME, tol, max_iter)
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
    """Return the numbers of rows of the stages, increasing; only one if there are too few rows for two."""
    most = min(source.n, LEVELS[-1], max(HELD_ENTRIES // source.p, 1))
    return [rows for rows in LEVELS[:-1] if 2 * rows <= most] + [most]


def sample(source: Source, count: int) -> Array:
    """Return centred rows (count, p), one from each of `count` equal stretches of the source; a rank's own ones."""
    index = one_per_stretch(source.n, count, seed=1) if count < source.n else np.arange(source.n)
    index = own_of(index, source.n)
    mean = np.asarray(source.covariance()[0], np.float32)
    X = np.empty((len(index), source.p), np.float32)
    for part in np.array_split(np.arange(len(index)), max(1, len(index) // 2048)):
        X[part] = source.take(index[part]) - mean
    return X
