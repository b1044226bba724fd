"""Which kind of step comes next: pairwise, guarded Newton, or quasi-Newton from a kept Jacobian."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sigmapca_cli.solvers import jacobian as jac
from sigmapca_cli.solvers import steps
from sigmapca_cli.solvers.krylov import Free
from sigmapca_cli.solvers.stage import Point, Stage

Array = np.ndarray

CLOSE = 0.05
"""Largest angle of an unlimited Newton step that is tried, radians."""
FOLD = 1e-4
"""Relative residual at which quasi-Newton steps that fail have met a fold; below, the Jacobian may be inexact, until it
is averaged over all rows."""
SUCCESS = 0.7
"""A quasi-Newton step that does not bring the least residual so far to less than this fraction has failed."""
FAILURES = 4
"""Failures after which a kept Jacobian is averaged anew, over more rows."""
WINDOW, STALL = 5, 0.6
"""Pairwise steps go on while five of them bring the residual to less than this fraction."""
FREE_WINDOW, FREE_STALL = 10, 0.8
"""The same where pairs are too many to hold J, ten steps and the norm of the angles: max |S| does not fall while one
of 2,000 pairs is still turning, and a pairwise step costs no more than one product with J."""
FREE_CLOSE = 0.02
"""Largest pairwise angle at which J ≈ D is kept and corrected, if the angles are falling."""
ESCAPE_ANGLE = 0.3
"""How far it turns away from them, radians."""


@dataclass
class Controller:
    """Chooses the kind of each step from the record of residuals: pairwise, guarded, or quasi-Newton.

    Guarded steps, each with a new Jacobian, make for a stable solution. Once Newton's step is short, one
    Jacobian, averaged over part of the rows, is kept and corrected by Broyden's rank-one updates from the
    residuals of all rows. `turned` is how far each pair has turned in all, radians.
    """

    pairwise: bool
    last_stage: bool = True
    J: steps.Dense | Free | None = None
    failures: int = 0
    wait: int = 0
    trust: float = steps.TRUST
    guarded: bool = False
    theta: Array | None = None
    before: Array | None = None
    record: list[float] = field(default_factory=list)
    turned: Array | float = 0.0

    def step(self, stage: Stage, point: Point) -> Array:
        """The rotation to make from this point, on pairs i < j."""
        S, D = jac.pack(point.S), steps.preconditioner(point.H, point.K)
        self.record.append(float(np.linalg.norm(S / D)) if stage.free else point.relative)
        theta = self._choose(stage, point, S, D)
        self.theta, self.before, self.turned = theta, S, self.turned + theta
        return theta

    def reset(self) -> None:
        """Forget the record: the equations themselves have changed."""
        self.record, self.J, self.theta, self.trust = [], None, None, steps.TRUST
        self.guarded = False

    def restart(self) -> None:
        """Begin anew, with pairwise steps."""
        self.reset()
        self.pairwise, self.wait, self.failures = True, 0, 0

    @property
    def kept(self) -> bool:
        """Whether a Jacobian is in use from one step to the next."""
        return self.J is not None

    def _choose(self, stage: Stage, point: Point, S: Array, D: Array) -> Array:
        if self.J is not None and self.theta is not None and self.before is not None:
            theta = self._corrected(stage, point, S)
            if theta is not None:
                return theta
        self.pairwise = self.pairwise and not self._pairwise_stalled(stage.free)
        if self.pairwise:
            if stage.free and self._settling(S / D):
                self.J, self.failures = Free(None, np.sqrt(D)), 0
            return steps.pairwise_step(S, D)
        if stage.free and self.guarded and self.record[-1] > self.record[-2]:
            stage.widen()  # a weak direction is the first to suffer from a J of fewer rows than S
        J = stage.system(point)
        theta, guarded = J.both(S)
        if self.wait == 0 and self._falling() and np.abs(theta).max() < CLOSE:
            self.J, self.failures = J, 0
            return theta
        self.J, self.wait, self.guarded = None, max(0, self.wait - 1), True
        return self._guarded(guarded())

    def _corrected(self, stage: Stage, point: Point, S: Array) -> Array | None:
        """The quasi-Newton step of the kept J, or what follows when it has failed; None: J is to be had anew."""
        assert self.J is not None and self.theta is not None and self.before is not None
        self.failures += self.record[-1] > SUCCESS * min(self.record[:-1])
        if self.failures <= FAILURES:
            self.J = self.J.corrected(S - self.before, self.theta)
            return steps.limited(self.J.newton(S), 2 * CLOSE)
        if self.pairwise:  # it was D, and that is not near enough to J
            self.pairwise, self.J = False, None
            return None
        folded = point.relative > FOLD and min(self.record) > FOLD
        if folded or not stage.widen():
            # a weak direction in which the residual has a least value but no zero: go past it, as the flow
            # θ' = −S does; Newton's step leads back into it from one of its sides
            theta = stage.system(point).guarded(S)
            self.reset()
            self.wait = 3
            return ESCAPE_ANGLE * theta / np.abs(theta).max()
        self.wait = 0
        return None

    def _settling(self, angles: Array) -> bool:
        return np.abs(angles).max() < FREE_CLOSE and (
            len(self.record) < 2 or self.record[-1] < SUCCESS * self.record[-2]
        )

    def _guarded(self, theta: Array) -> Array:
        if self.theta is not None:
            cosine = theta @ self.theta / (np.linalg.norm(theta) * np.linalg.norm(self.theta) + 1e-300)
            # there is no merit function to search along: steps that turn back are the sign of a radius too
            # large
            self.trust *= 0.5 if cosine < -0.2 else 1.5 if cosine > 0.2 else 1.0
            self.trust = min(max(self.trust, steps.LEAST_TRUST), steps.TRUST)
        return steps.limited(theta, self.trust)

    def _falling(self) -> bool:
        # guarded steps approach stable solutions only: where they make progress, or on a subset did, so may
        # Newton's
        return self.last_stage or len(self.record) < 2 or self.record[-1] < 0.9 * self.record[-2]

    def _pairwise_stalled(self, free: bool) -> bool:
        window, share = (FREE_WINDOW, FREE_STALL) if free else (WINDOW, STALL)
        return len(self.record) > window and self.record[-1] > share * self.record[-1 - window]
