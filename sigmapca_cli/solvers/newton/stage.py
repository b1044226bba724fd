"""A subset of the rows, the residual, curvature and Jacobian on them, and what is measured again there.

These are a per component (`a=auto`), or the sign of the score (FastICA's log cosh).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.jacobian import Product, ScoreMoments, measure
from sigmapca_cli.solvers.newton.krylov import MatrixFreeJacobian
from sigmapca_cli.solvers.newton.scores import Score
from sigmapca_cli.solvers.rows.inputs import scaled_to_mean_one, second_moments, split
from sigmapca_cli.solvers.rows.parallel import means, spaced
from sigmapca_cli.system.row_shards import place

Array = np.ndarray

CANDIDATES = (3.0, 0.8)
"""a for components whose tails are heavier than a Gaussian's, and a for components whose tails are lighter."""


def certificate(m: Array, c: Array) -> Array:
    """Return (m − c)/(|m| + |c|), (k,): positive where two such components of equal variance are identified, 0 for
    Gaussians."""
    return (m - c) / np.maximum(np.abs(m) + np.abs(c), np.finfo(np.float64).tiny)


def required_gain(iteration: int, k: int) -> float:
    """Return the certificate that another choice must gain before it is taken.

    The margin grows with the iterations, so that the choices stop changing and the iteration can converge. It starts
    to grow only after 2k/5 iterations: before, k components from a random start are still nearly Gaussian.
    """
    return 0.01 * 1.25 ** max(0, iteration - max(5, 2 * k // 5))


@dataclass
class Adaptive:
    """a (k,) and signs (k,) of the score, and which of the two may change.

    auto: each a_j is the one of CANDIDATES that has the larger certificate. Both moments of φ are bounded functions
    of z for h = a·tanh(z/a): one outlier cannot decide, as it can in a sample kurtosis. signed: s_j =
    sign(m_j − c_j).
    """

    a: Array
    signs: Array
    auto: bool
    signed: bool

    @classmethod
    def of(cls, a: object, k: int, signed: bool) -> Adaptive:
        """Build from "auto", a number, or one number per component."""
        auto = isinstance(a, str)
        values = np.full(k, CANDIDATES[0]) if auto else np.array(np.broadcast_to(np.asarray(a, float), (k,)))
        return cls(values, np.ones(k), auto, signed)

    def update(self, Y: Array, M: Array, score: Score, iteration: int) -> bool:
        """Measure a, or the signs, again on the rows of Y (n, k); return True if one of them changed."""
        if self.signed:
            return self._update_signs(Y, M, score, iteration)
        return self.auto and self._update_a(Y, M, score, iteration)

    def _update_a(self, Y: Array, M: Array, score: Score, iteration: int) -> bool:
        scores = []
        for candidate in CANDIDATES:
            moments = measure(Y, M, score, np.full(len(self.a), candidate))
            scores.append(certificate(moments.m, moments.c))
        heavy = self.a == CANDIDATES[0]
        gain = np.where(heavy, scores[1] - scores[0], scores[0] - scores[1])
        switch = gain > required_gain(iteration, len(self.a))
        self.a = np.where(switch, np.where(heavy, CANDIDATES[1], CANDIDATES[0]), self.a)
        return bool(switch.any())

    def _update_signs(self, Y: Array, M: Array, score: Score, iteration: int) -> bool:
        moments = measure(Y, M, score, self.a)
        gap = self.signs * certificate(moments.m, moments.c)
        switch = gap < (0.0 if iteration == 0 else -required_gain(iteration, len(self.a)))
        self.signs = np.where(switch, -self.signs, self.signs)
        return bool(switch.any())


JACOBIAN_ROWS = 100_000
"""Number of rows that the Jacobian is first averaged over; it is multiplied by four when the steps stop reducing the
residual."""
PRODUCT_ROWS = 25_000
"""The same if only products with J are computed: each product is a pass over these rows."""


@dataclass(frozen=True)
class Point:
    """Residual and curvature at the rotation R on the rows of a stage."""

    R: Array
    sigma: Array
    C: Array
    S: Array
    H: Array
    K: Array
    moments: ScoreMoments

    @property
    def absolute(self) -> float:
        """max |S_ij|."""
        return float(np.abs(self.S).max(initial=0.0))

    @property
    def relative(self) -> float:
        """max |S_ij| over the mean of |m_j| + |c_j|."""
        scale = float(np.mean(np.abs(self.moments.m) + np.abs(self.moments.c)))
        return self.absolute / max(scale, float(np.finfo(np.float64).tiny))


@dataclass
class Rows:
    """The rows of one stage, n in all ranks, and their second moments; weights are a last column of Y, of mean 1."""

    Y: Array
    C: Array
    n: int

    @classmethod
    def spaced(cls, Y: Array, some: int, block: int, k: int) -> Rows:
        """Take `some` rows of Y, one from each of `some` equal stretches; the same rows on every call."""
        where = place(Y)
        if some < where[1]:
            Y = spaced(Y, some, where)
        Y = scaled_to_mean_one(Y, k)
        n, (C,) = means(lambda rows: (second_moments(*split(rows, k)),), Y, block)
        return cls(Y, C, n)


class Stage:
    """A subset of `count` rows, on which the equations are solved to one tolerance.

    independent: whether pairwise steps were enough so far; then a J of few rows is enough too.
    """

    def __init__(
        self, Y: Array, count: int, score: Score, adaptive: Adaptive, block: int, independent: bool = True
    ) -> None:
        self.k = len(adaptive.a)
        self.full, self.count, self.score, self.adaptive, self.block = Y, count, score, adaptive, block
        self.n = place(Y)[1]
        self.rows = Rows.spaced(Y, count, block, self.k)
        self.support = self._support(
            min(PRODUCT_ROWS if self.matrix_free and independent else JACOBIAN_ROWS, count)
        )

    def _support(self, count: int) -> Rows:
        return self.rows if count >= self.count else Rows.spaced(self.full, count, self.block, self.k)

    def at(self, R: Array, rows: Rows | None = None, third: bool = False) -> Point:
        """Return residual and curvature at R on `rows` (default: all rows of the stage)."""
        rows = rows or self.rows
        C = R.T @ rows.C @ R
        sigma = np.sqrt(np.diag(C))
        moments = measure(rows.Y, R / sigma, self.score, self.adaptive.a, third=third, block=self.block)
        moments = moments.signed(self.adaptive.signs)
        H, K = jac.curvature(moments, sigma)
        return Point(R, sigma, C, jac.residual(moments, sigma), H, K, moments)

    @property
    def matrix_free(self) -> bool:
        """Whether there are too many pairs to hold J."""
        return self.k * (self.k - 1) // 2 > steps.LARGEST_EIGEN

    def system(self, point: Point) -> steps.DenseJacobian | MatrixFreeJacobian:
        """Return J at the point, averaged over the supporting rows: as a matrix, or by products if pairs are many."""
        D = steps.preconditioner(point.H, point.K)
        if self.matrix_free:
            rows, adaptive = self.support, self.adaptive
            product = Product(rows.Y, rows.C, point.R, self.score, adaptive.a, adaptive.signs, self.block)
            return MatrixFreeJacobian(product, np.sqrt(D))
        there = self.at(point.R, self.support, third=True)
        return steps.DenseJacobian(jac.jacobian(there.moments, there.sigma, there.C), D)

    def unstable(self, point: Point) -> Array | None:
        """Return a direction along which the flow leaves this stationary point; None if the point is stable."""
        if len(point.H) < 2:
            return None
        # a subset, solved to a loose tolerance, shows only strong instability
        bound = steps.UNSTABLE if self.count == self.n else 4 * steps.UNSTABLE
        return self.system(point).unstable(bound)

    def add_rows(self) -> bool:
        """Average the Jacobian over four times as many rows from now on; return False if the limit is reached.

        If only products with J are computed, each step passes over the rows forty times. More than JACOBIAN_ROWS of
        them took minutes per step on image patches, and the solver converged no sooner.
        """
        if self.support.n >= (min(self.count, JACOBIAN_ROWS) if self.matrix_free else self.count):
            return False
        self.support = self._support(4 * self.support.n)
        return True

    def remeasure(self, R: Array, sigma: Array, iteration: int) -> bool:
        """Measure a, or the signs, again at R; return True if one of them changed."""
        return self.adaptive.update(self.support.Y, R / sigma, self.score, iteration)
