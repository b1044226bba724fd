"""One number of rows, and what is measured on them at a rotation: residual, curvature, Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers import jacobian as jac
from sigmapca_cli.solvers import steps
from sigmapca_cli.solvers.adapt import Adaptive
from sigmapca_cli.solvers.krylov import Free
from sigmapca_cli.solvers.moments import Moments, measure
from sigmapca_cli.solvers.parallel import spread, total
from sigmapca_cli.solvers.product import Product
from sigmapca_cli.solvers.scores import Score

Array = np.ndarray

JACOBIAN_ROWS = 100_000
"""Rows that the Jacobian is first averaged over; four times as many whenever its steps stop contracting the
residual."""
PRODUCT_ROWS = 25_000
"""The same where J is only multiplied with: rows are gone through once a product."""


def many(k: int) -> bool:
    """Whether k components have too many pairs to hold J."""
    return k * (k - 1) // 2 > steps.LARGEST_EIGEN


@dataclass(frozen=True)
class Point:
    """One candidate: the residual and curvature of the rotation R on the rows of a stage."""

    R: Array
    sigma: Array
    C: Array
    S: Array
    H: Array
    K: Array
    moments: Moments

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
    """The rows of one stage and their second moments."""

    Y: Array
    C: Array

    @classmethod
    def spaced(cls, Y: Array, count: int, block: int) -> Rows:
        """count rows of Y, one from each of count equal stretches, the same ones every time."""
        n = len(Y)
        if count < n:
            Y = Y[spread(n, count)]
        (C,) = total(lambda rows: (rows.T @ rows,), Y, block)
        return cls(Y, C / len(Y))


class Stage:
    """One number of rows, solved to one tolerance.

    independent: whether pairwise steps have done so far, so that a J of few rows will do.
    """

    def __init__(
        self, Y: Array, count: int, score: Score, adaptive: Adaptive, block: int, independent: bool = True
    ) -> None:
        self.full, self.count, self.score, self.adaptive, self.block = Y, count, score, adaptive, block
        self.rows = Rows.spaced(Y, count, block)
        self.support = self._support(min(PRODUCT_ROWS if self.free and independent else JACOBIAN_ROWS, count))

    def _support(self, count: int) -> Rows:
        return self.rows if count >= self.count else Rows.spaced(self.full, count, self.block)

    def at(self, R: Array, rows: Rows | None = None, third: bool = False) -> Point:
        """Residual and curvature at R on the rows given (default: all of the stage)."""
        rows = rows or self.rows
        C = R.T @ rows.C @ R
        sigma = np.sqrt(np.diag(C))
        moments = measure(rows.Y, R / sigma, self.score, self.adaptive.a, third=third, block=self.block)
        moments = moments.signed(self.adaptive.signs)
        H, K = jac.curvature(moments, sigma)
        return Point(R, sigma, C, jac.residual(moments, sigma), H, K, moments)

    @property
    def free(self) -> bool:
        """Whether there are too many pairs to hold J."""
        return many(self.rows.Y.shape[1])

    def system(self, point: Point) -> steps.Dense | Free:
        """J at the point, averaged over the supporting rows: whole, or as a product where pairs are many."""
        D = steps.preconditioner(point.H, point.K)
        if self.free:
            rows, adaptive = self.support, self.adaptive
            product = Product(rows.Y, rows.C, point.R, self.score, adaptive.a, adaptive.signs, self.block)
            return Free(product, np.sqrt(D))
        there = self.at(point.R, self.support, third=True)
        return steps.Dense(jac.jacobian(there.moments, there.sigma, there.C), D)

    def unstable(self, point: Point) -> Array | None:
        """A direction that leaves this stationary point, if it is unstable."""
        if len(point.H) < 2:
            return None
        # a subset, solved loosely, shows strong instability only
        bound = steps.UNSTABLE if self.count == len(self.full) else 4 * steps.UNSTABLE
        return self.system(point).unstable(bound)

    def widen(self) -> bool:
        """Average the Jacobian over four times as many rows from now on; False if all that may be are in use.

        Where it is only multiplied with, each step goes through the rows forty times: more of them than
        JACOBIAN_ROWS took minutes a step on image patches, and converged no sooner.
        """
        if len(self.support.Y) >= (min(self.count, JACOBIAN_ROWS) if self.free else self.count):
            return False
        self.support = self._support(4 * len(self.support.Y))
        return True

    def adapt(self, R: Array, sigma: Array, iteration: int) -> bool:
        """Re-measure a, or the signs, at R."""
        return self.adaptive.update(self.support.Y, R / sigma, self.score, iteration)
