"""`a=auto`: the answer of solver=independence, and there for each component the a that holds it best.

The a of a component follows from its shape at the sources. Where the iteration starts, at the principal axes, shapes
are mixed: chosen there, a was wrong for t with 3 degrees of freedom, scale mixtures, Poisson and two-valued sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.linalg.rotations import partners
from sigmapca_cli.solvers.independence.contrast import Contrast
from sigmapca_cli.solvers.independence.fit import answered
from sigmapca_cli.solvers.independence.null import told_apart
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.stage import Adaptive, Stage
from sigmapca_cli.solvers.rows.inputs import held
from sigmapca_cli.solvers.rows.parallel import count as count_rows
from sigmapca_cli.solvers.rows.parallel import rows_per_block
from sigmapca_cli.solvers.rows.parallel import threads as on_threads

Array = np.ndarray

TURNED = 0.15
"""Sine of the angle from which on a pair counts as turned: of five components one such pair costs a mean |cos| of
.005."""
CANDIDATES = (5.0, 0.8, 0.4)
"""a for tails heavier than a Gaussian's, for lighter ones, and for few values (±1, two unequal values, three). With
8 in place of 5, twelve sources on 200 rows had a mean |cos| of .89 for .96."""


@dataclass(frozen=True)
class Start:
    """Where the steps start: R, a rotation (k, k) or filters (p, k), and a (k,) of its components.

    told (k, k): which pairs variances or negentropies tell apart there.
    """

    R: Array
    a: Array
    told: Array

    def loose(self, R: Array) -> list[tuple[int, int]]:
        """Return the pairs of components, by decreasing variance from 0, that the steps to R turned away."""
        turn = np.abs(self.R.T @ (R / np.linalg.norm(R, axis=0)))[:, partners(self.R, R)]
        i, j = np.triu_indices(len(turn), 1)
        left = self.told[i, j] & (np.maximum(turn[i, j], turn[j, i]) > TURNED)
        return [(int(x), int(y)) for x, y in zip(i[left], j[left], strict=True)]

    def words(self, R: Array) -> str:
        """Return a sentence on the pairs that the a did not hold, where the steps ended at R; "" without any."""
        loose = self.loose(R)
        if not loose:
            return ""
        some = ", ".join(f"{i + 1} and {j + 1}" for i, j in loose[:3])
        return (
            f"the loss does not hold {len(loose)} pair{'s' * (len(loose) > 1)} of the independent components where "
            f"solver=independence finds them ({some}{', …' * (len(loose) > 3)}), whatever a: that solver needs none"
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
    standard errors.
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
        mine = Rows.of(wide, weights)
        told = told_apart(Contrast(mine, 1.0).at(R), mine.effective)
    return Start(R, np.array(CANDIDATES)[np.argmax(gap / error, axis=0)], told)


def held_by(stage: Stage, M: Array, a: Array) -> tuple[Array, Array]:
    """Return how well a (k,) holds each component of z = YM: m − c (k,), and its standard error."""
    found = measure(stage.rows.Y, M, stage.score, a, error=True, block=stage.block)
    assert found.error is not None
    return found.m - found.c, np.maximum(found.error, np.finfo(np.float64).tiny)
