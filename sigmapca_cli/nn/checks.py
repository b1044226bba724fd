"""Checks of a layer's settings, when it is made."""

from __future__ import annotations

import math

from sigmapca_cli.methods import nonlinearities

SIGMAS = ("ema", "batch", "trained", "unit")
CONSTRAINTS = ("unit_norm", "symmetric", "gram_schmidt", "none")


def check_sizes(p: int, k: int) -> None:
    """Raise ValueError unless 1 ≤ k ≤ p."""
    for name, value in (("in_features", p), ("n_components", k)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value!r}: give a whole number from 1 on")
    if k > p:
        raise ValueError(f"n_components={k} is more than in_features={p}")


def check_choices(sigma: str, constraint: str, nonlinearity: str, derivative: str, start: str) -> None:
    """Raise ValueError for a word that is not a choice."""
    for name, value, allowed in (
        ("sigma", sigma, SIGMAS),
        ("constraint", constraint, CONSTRAINTS),
        ("nonlinearity", nonlinearity, sorted(set(nonlinearities.REGISTRY) - {"trainable_scaled_tanh"})),
        ("derivative", derivative, ("true", "one")),
        ("start", start, ("data", "one")),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r}: choose from {', '.join(allowed)}")


def check_numbers(a: float | str, momentum: float, epsilon: float) -> None:
    """Raise ValueError for a number out of its range."""
    if a != "auto" and (isinstance(a, str) or not 0 < a < math.inf):
        raise ValueError(f"a={a!r}: give a positive number, or auto")
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum={momentum!r}: must lie from 0 to 1")
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon={epsilon!r}: must be 0 or more")
