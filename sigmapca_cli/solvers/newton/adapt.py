"""Settings that are measured again while the solver runs: a per component (`a=auto`), or the sign of the score
(FastICA's log cosh)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.newton.score_moments import measure
from sigmapca_cli.solvers.newton.scores import Score

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
