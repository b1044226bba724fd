"""Scores: the function φ whose cross moments vanish where the main loss is stationary.

The gradient of the main loss in column j reads ∝ E[xᵀ φ(z_j)] with φ(z) = (z − h(z))·h′(z) (docs/solver.md; paper,
the section on nonlinear PCA). A nonlinearity h therefore enters the solver through φ and φ′ only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sigmapca_cli.system.errors import InputError

Array = np.ndarray
Score = Callable[..., tuple[Array, Array]]

ASYMMETRIC_SCALE = 1.6
"""c of h(z) = c·tanh(z): close to 1/std(tanh(z)) for a standard normal z."""


def cube(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ = z³, φ′ = 3z²: the limit of 3a²φ for h = a·tanh(z/a) as a → ∞; a factor does not change the roots."""
    square = z * z
    return z * square, 3 * square


def scaled_tanh(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = a·tanh(z/a), true derivative.

    φ = (z − h)(1 − t²), φ′ = (1 − t²)·t·(3t − 2z/a), t = tanh(z/a).
    """
    if np.isinf(a).all():
        return cube(z, a)
    u = z / a
    t = np.tanh(u)
    dh = t * t
    np.subtract(1, dh, out=dh)
    phi = u - t
    dphi = t - 2 * phi  # 3t − 2u
    dphi *= t
    dphi *= dh
    phi *= dh
    phi *= a
    return phi, dphi


def scaled_tanh_one(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = a·tanh(z/a), h′ := 1: φ = z − h, φ′ = t²."""
    t = np.tanh(z / a)
    return z - a * t, t * t


def tanh(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = tanh(z), true derivative; a is ignored."""
    return scaled_tanh(z, np.ones_like(a))


def tanh_one(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = tanh(z), h′ := 1; a is ignored."""
    return scaled_tanh_one(z, np.ones_like(a))


def hard_tanh_one(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = clip(z, −a, a), h′ := 1: φ = z − h, φ′ = 1 where |z| > a."""
    return z - np.clip(z, -a, a), (np.abs(z) > a).astype(z.dtype)


def asymmetric(z: Array, a: Array, c: float = ASYMMETRIC_SCALE) -> tuple[Array, Array]:
    """Return φ and φ′ for h = c·tanh(z), true derivative: φ = (z − ct)·c(1 − t²)."""
    t = np.tanh(z)
    s = 1 - t * t
    return (z - c * t) * (c * s), c * s * (1 - c * s - 2 * t * (z - c * t))


def asymmetric_one(z: Array, a: Array, c: float = ASYMMETRIC_SCALE) -> tuple[Array, Array]:
    """Return φ and φ′ for h = c·tanh(z), h′ := 1: φ = z − ct, φ′ = 1 − c(1 − t²)."""
    t = np.tanh(z)
    return z - c * t, 1 - c + c * t * t


def identity(z: Array, a: Array) -> tuple[Array, Array]:
    """Return φ and φ′ for h = z, both 0: every rotation is stationary, as for the linear autoencoder."""
    return np.zeros_like(z), np.zeros_like(z)


def logcosh(z: Array, a: Array) -> tuple[Array, Array]:
    """Return the score of FastICA's log cosh contrast, g = tanh(z), g′ = 1 − t² (Hyvärinen 1999); a is ignored."""
    t = np.tanh(z)
    return t, 1 - t * t


SCORES: dict[tuple[str, str], Score] = {
    ("scaled_tanh", "true"): scaled_tanh,
    ("scaled_tanh", "one"): scaled_tanh_one,
    ("tanh", "true"): tanh,
    ("tanh", "one"): tanh_one,
    ("hard_tanh", "one"): hard_tanh_one,
    ("asymmetric", "true"): asymmetric,
    ("asymmetric", "one"): asymmetric_one,
    ("identity", "true"): identity,
    ("identity", "one"): identity,
    ("logcosh", "true"): logcosh,
}


def lookup(nonlinearity: str, derivative: str, c: float | None = None) -> Score:
    """Return the score of a nonlinearity; c is the scale of `asymmetric`.

    Raise InputError if φ is 0 everywhere (hard tanh with its true derivative, sign) or is not smooth enough.
    """
    try:
        score = SCORES[nonlinearity, derivative]
        return partial(score, c=c) if nonlinearity == "asymmetric" and c is not None else score
    except KeyError:
        known = ", ".join(f"{name}/{kind}" for name, kind in SCORES)
        raise InputError(
            f"solver newton has no score for nonlinearity={nonlinearity} with derivative={derivative};"
            f" choose one of {known}, or train with solver=stochastic"
        ) from None
