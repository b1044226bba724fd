"""J(R; δ): a function whose gradient is the residual S at the rotation where δ was computed (docs/solver.md).

With Φ the primitive of φ, Φ(0) = 0, and δ_j = 4E[Φ(z_j)] − E[z_jφ(z_j)] held constant,
J(R; δ) = Σ_j σ_j⁴(E[Φ(z_j)] − δ_j/4) and ∂J/∂θ_ij = −σ_i²σ_j²S_ij. S itself is no gradient, because the k numbers δ
change with the rotation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sigmapca_cli.solvers.newton.scores import ASYMMETRIC_SCALE, Score, lookup
from sigmapca_cli.solvers.rows.parallel import means, rows_per_block

Array = np.ndarray
Primitive = Callable[[Array, Array], Array]


def log_cosh(u: Array) -> Array:
    """Return ln cosh u, without overflow for large |u|."""
    size = np.abs(u)
    return np.asarray(size + np.log1p(np.exp(-2 * size)) - np.log(2).astype(u.dtype))


def scaled_tanh(z: Array, a: Array) -> Array:
    """Return Φ = a²(u·t − ln cosh u − ½t²), u = z/a, t = tanh u; for a = ∞, where φ = z³, return z⁴/4."""
    if np.isinf(a).all():
        return np.asarray(z**4 / 4)
    u = z / a
    t = np.tanh(u)
    return np.asarray(a * a * (u * t - log_cosh(u) - t * t / 2))


def scaled_tanh_one(z: Array, a: Array) -> Array:
    """Return Φ = z²/2 − a² ln cosh(z/a)."""
    return np.asarray(z * z / 2 - a * a * log_cosh(z / a))


def hard_tanh_one(z: Array, a: Array) -> Array:
    """Return Φ = ½max(|z| − a, 0)²."""
    return np.asarray(np.square(np.maximum(np.abs(z) - a, 0)) / 2)


def asymmetric(z: Array, a: Array) -> Array:
    """Return Φ = c(z·t − ln cosh z) − ½c²t², t = tanh z."""
    c, t = ASYMMETRIC_SCALE, np.tanh(z)
    return np.asarray(c * (z * t - log_cosh(z)) - c * c * t * t / 2)


PRIMITIVES: dict[tuple[str, str], Primitive] = {
    ("scaled_tanh", "true"): scaled_tanh,
    ("scaled_tanh", "one"): scaled_tanh_one,
    ("tanh", "true"): lambda z, a: scaled_tanh(z, np.ones_like(a)),
    ("tanh", "one"): lambda z, a: scaled_tanh_one(z, np.ones_like(a)),
    ("hard_tanh", "one"): hard_tanh_one,
    ("asymmetric", "true"): asymmetric,
    ("asymmetric", "one"): lambda z, a: np.asarray(z * z / 2 - ASYMMETRIC_SCALE * log_cosh(z)),
    ("identity", "true"): lambda z, a: np.zeros_like(z),
    ("identity", "one"): lambda z, a: np.zeros_like(z),
    ("logcosh", "true"): lambda z, a: log_cosh(z),
}


NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)


def primitive_of(nonlinearity: str, derivative: str) -> Primitive:
    """Return Φ of a score that `scores.lookup` knows; without a closed form here, by Gauss-Legendre quadrature."""
    return PRIMITIVES.get((nonlinearity, derivative)) or integral(lookup(nonlinearity, derivative))


def integral(score: Score) -> Primitive:
    """Return Φ(z) = z·∫₀¹ φ(tz) dt with 32 nodes; exact to rounding for smooth φ and |z| up to about 30."""

    def primitive(z: Array, a: Array) -> Array:
        mean = np.zeros_like(z)
        for t, w in zip((NODES + 1) / 2, WEIGHTS / 2, strict=True):
            mean += w * score(np.asarray(t * z, z.dtype), a)[0]
        return np.asarray(z * mean)

    return primitive


def mean_primitive(Y: Array, M: Array, primitive: Primitive, a: Array) -> Array:
    """Return E[Φ(z_j)] (k,) of z = YM over the rows of Y."""
    Mt, at = np.ascontiguousarray(M, Y.dtype), np.asarray(a, Y.dtype)
    _, (found,) = means(
        lambda rows: (primitive(rows @ Mt, at).sum(0, dtype=np.float64),), Y, rows_per_block(len(M))
    )
    return found


def value(sigma: Array, primitive: Array, delta: Array) -> float:
    """Return J = Σ_j σ_j⁴(E[Φ_j] − δ_j/4)."""
    return float(np.sum(sigma**4 * (primitive - delta / 4)))
