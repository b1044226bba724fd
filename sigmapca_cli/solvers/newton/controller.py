"""The choice of the next kind of step: pairwise, guarded Newton, or quasi-Newton from a kept Jacobian."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import steps
from sigmapca_cli.solvers.newton.krylov import MatrixFreeJacobian
from sigmapca_cli.solvers.newton.stage import Point, Stage

Array = np.ndarray

CLOSE = 0.05
"""Largest angle of an unlimited Newton step that is tried, radians."""
FOLD = 1e-4
"""Relative residual above which failing quasi-Newton steps are blamed on a local minimum of |S| that is no root (a
fold). Below it they are blamed on an inexact Jacobian, until the Jacobian is averaged over all rows."""
SUCCESS = 0.7
"""A quasi-Newton step fails if its residual is above this fraction of the least residual so far."""
FAILURES = 4
"""Number of failures after which a kept Jacobian is computed again, over more rows."""
WINDOW, STALL = 5, 0.6
"""Pairwise steps go on while WINDOW of them reduce the residual to less than the fraction STALL."""
MATRIX_FREE_WINDOW, MATRIX_FREE_STALL = 10, 0.8
"""The same if there are too many pairs to hold J; the record is then the norm of the angles. max |S| does not decrease
while one of 2,000 pairs is still rotating, and a pairwise step costs no more than one product with J."""
MATRIX_FREE_CLOSE = 0.02
"""Largest pairwise angle, radians, at which J ≈ D is kept and corrected, if the angles decrease."""
ESCAPE_ANGLE = 0.3
"""Largest angle of the step that leaves a fold or an unstable stationary point, radians."""


@dataclass
class Controller:
    """Chooses the kind of each step from the record of residuals: pairwise, guarded, or quasi-Newton.

    Guarded steps, each with a new Jacobian, lead to a stable solution. Once the Newton step is short, one
    Jacobian, averaged over part of the rows, is kept and corrected by Broyden's rank-one updates from the
    residuals of all rows. `turned` (pairs,) is the sum of the angles of each pair so far, radians.
    """

    pairwise: bool
    last_stage: bool = True
    J: steps.DenseJacobian | MatrixFreeJacobian | None = None
    failures: int = 0
    wait: int = 0
    trust: float = steps.TRUST
    guarded: bool = False
    theta: Array | None = None
    before: Array | None = None
    record: list[float] = field(default_factory=list)
    turned: Array | float = 0.0

    def step(self, stage: Stage, point: Point) -> Array:
        """Return the next step θ from this point, on pairs i < j, radians."""
        S, D = jac.pack(point.S), steps.preconditioner(point.H, point.K)
        self.record.append(float(np.linalg.norm(S / D)) if stage.matrix_free else point.relative)
        theta = self._choose(stage, point, S, D)
        self.theta, self.before, self.turned = theta, S, self.turned + theta
        return theta

    def reset(self) -> None:
        """Clear the record and the Jacobian, because the equations themselves have changed."""
        self.record, self.J, self.theta, self.trust = [], None, None, steps.TRUST
        self.guarded = False

    def restart(self) -> None:
        """Start again with pairwise steps."""
        self.reset()
        self.pairwise, self.wait, self.failures = True, 0, 0

    @property
    def has_kept_jacobian(self) -> bool:
        """Whether a Jacobian is kept from one step to the next."""
        return self.J is not None

    def _choose(self, stage: Stage, point: Point, S: Array, D: Array) -> Array:
        if self.J is not None and self.theta is not None and self.before is not None:
            theta = self._corrected(stage, point, S)
            if theta is not None:
                return theta
        self.pairwise = self.pairwise and not self._pairwise_stalled(stage.matrix_free)
        if self.pairwise:
            if stage.matrix_free and self._settling(S / D):
                self.J, self.failures = MatrixFreeJacobian(None, np.sqrt(D)), 0
            return steps.pairwise_step(S, D)
        if stage.matrix_free and self.guarded and self.record[-1] > self.record[-2]:
            stage.add_rows()  # a weak direction suffers first if J has fewer rows than S
        J = stage.system(point)
        theta, guarded = J.newton_and_guarded(S)
        if self.wait == 0 and self._falling() and np.abs(theta).max() < CLOSE:
            self.J, self.failures = J, 0
            return theta
        self.J, self.wait, self.guarded = None, max(0, self.wait - 1), True
        return self._guarded(guarded())

    def _corrected(self, stage: Stage, point: Point, S: Array) -> Array | None:
        """Return the quasi-Newton step of the kept J, or a step past a fold; None if J must be computed again."""
        assert self.J is not None and self.theta is not None and self.before is not None
        self.failures += self.record[-1] > SUCCESS * min(self.record[:-1])
        if self.failures <= FAILURES:
            self.J = self.J.corrected(S - self.before, self.theta)
            return steps.limited(self.J.newton(S), 2 * CLOSE)
        if self.pairwise:  # the kept J was D, which is not close enough to the true J
            self.pairwise, self.J = False, None
            return None
        folded = point.relative > FOLD and min(self.record) > FOLD
        if folded or not stage.add_rows():
            # along a weak direction the residual has a minimum but no zero: go past it, as the flow θ' = −S does;
            # the Newton step from one side of it would lead back
            theta = stage.system(point).guarded(S)
            self.reset()
            self.wait = 3
            return ESCAPE_ANGLE * theta / np.abs(theta).max()
        self.wait = 0
        return None

    def _settling(self, angles: Array) -> bool:
        return np.abs(angles).max() < MATRIX_FREE_CLOSE and (
            len(self.record) < 2 or self.record[-1] < SUCCESS * self.record[-2]
        )

    def _guarded(self, theta: Array) -> Array:
        if self.theta is not None:
            self.trust = steps.adapted(self.trust, theta, self.theta)
        return steps.limited(theta, self.trust)

    def _falling(self) -> bool:
        # guarded steps approach stable solutions only: if they make progress, or did so on a subset, Newton steps may
        # follow
        return self.last_stage or len(self.record) < 2 or self.record[-1] < 0.9 * self.record[-2]

    def _pairwise_stalled(self, matrix_free: bool) -> bool:
        window, share = (MATRIX_FREE_WINDOW, MATRIX_FREE_STALL) if matrix_free else (WINDOW, STALL)
        return len(self.record) > window and self.record[-1] > share * self.record[-1 - window]
