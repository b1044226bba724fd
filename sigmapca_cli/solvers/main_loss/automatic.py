"""`a=auto` of solver=newton: the answer of solver=independence, and there for each component the a that holds it best.

The a of a component follows from its shape at the sources. Where the iteration starts, at the principal axes, shapes
are mixed: chosen there, a was wrong for t with 3 degrees of freedom, scale mixtures, Poisson and two-valued sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.independence.fit import answered
from sigmapca_cli.solvers.newton.adapt import Adaptive
from sigmapca_cli.solvers.newton.score_moments import measure
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.stage import Stage
from sigmapca_cli.solvers.rows.parallel import count as count_rows
from sigmapca_cli.solvers.rows.parallel import rows_per_block
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.solvers.rows.weights import held

Array = np.ndarray

CANDIDATES = (8.0, 0.8, 0.4)
"""a for tails heavier than a Gaussian's, for lighter ones, and for few values (±1, two unequal values, three)."""


@dataclass(frozen=True)
class Start:
    """Where Newton's steps start: rotation R (k, k), a (k,) of its components, pairs (m, 2) that no a holds."""

    R: Array
    a: Array
    loose: Array

    def words(self) -> str:
        """Return a sentence on the pairs that no a holds, numbered by decreasing variance from 1; "" without any."""
        if not len(self.loose):
            return ""
        some = ", ".join(f"{i + 1} and {j + 1}" for i, j in self.loose[:3])
        return (
            f"no a of the loss holds {len(self.loose)} pair{'s' * (len(self.loose) > 1)} of the independent "
            f"components ({some}{', …' * (len(self.loose) > 3)}): solver=independence needs no a"
        )


def start_and_a(
    Y: Array,
    derivative: str = "true",
    *,
    patches: bool = False,
    weights: Array | None = None,
    threads: int | None = None,
) -> Start:
    """Return the rotation of solver=independence, and the a of each component that holds it best there.

    Y (n, k): uncorrelated columns; patches: image patches, as for `independence.fit.answered`. An a holds a component
    by m − c, its share in the curvature of a pair of equal variances; the best one is that with the largest m − c in
    standard errors. A pair is loose if its curvature is negative beyond two of them.
    """
    k = Y.shape[1]
    wide = np.asarray(Y, np.float64)
    R = answered(wide, "auto", False, patches=patches, weights=weights, threads=threads).result.R
    score, block = lookup("scaled_tanh", derivative), rows_per_block(k)
    with on_threads(threads):
        rows = held(wide, weights)
        stage = Stage(rows, count_rows(rows), score, Adaptive.of(1.0, k, False), block)
        sigma = stage.at(R).sigma
        order = np.argsort(-sigma, kind="stable")
        R, M = R[:, order], R[:, order] / sigma[order]
        gap, error = np.stack([held_by(stage, M, np.full(k, a)) for a in CANDIDATES], axis=1)
        best = np.argmax(gap / error, axis=0)
        a = stage.adaptive.a = np.array(CANDIDATES)[best]
        H, error = stage.at(R).H, error[best, np.arange(k)]
    i, j = np.triu_indices(k, 1)
    loose = H[i, j] < -2 * np.sqrt(error[i] ** 2 + error[j] ** 2)
    return Start(R, a, np.stack([i, j], 1)[loose])


def held_by(stage: Stage, M: Array, a: Array) -> tuple[Array, Array]:
    """Return how well a (k,) holds each component of z = YM: m − c (k,), and its standard error."""
    found = measure(stage.rows.Y, M, stage.score, a, error=True, block=stage.block)
    assert found.error is not None
    return found.m - found.c, np.maximum(found.error, np.finfo(np.float64).tiny)
