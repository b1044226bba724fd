"""The convergence of a run: the angle from its filters to a stationary point, and whether that point is stable.

Definition, cost and possible errors: docs/convergence.md. The gradient alone is not enough. It is small at the saddle
where linear PCA leaves components of equal variance, and wherever the curvature of a pair is small. The angle is the
gradient divided by the curvature, for each way (`curvature`); it does not depend on the learning rate, the schedule,
the scale or the length of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sigmapca_cli.training.coupled import UNSTABLE, Coupled, Modes, newton_step
from sigmapca_cli.training.curvature import Curvatures
from sigmapca_cli.training.local import LocalField

FLAT = 1e-3
"""Curvature below which a way counts as flat, even if all rows are used; curvatures are about 2 at most."""
HELD_LEVEL = 0.01
"""Probability that chance alone calls some way unstable."""
QUARTER = np.pi / 2
"""Largest angle that is reported, radians."""
MOST_NOISE = 0.05
"""Largest sampling error that is subtracted from the angle of one way, radians."""


@dataclass(frozen=True)
class Convergence:
    """The distance of the components (k,), numbered as they are trained, from a stable stationary point.

    angle: estimated angle of each to the stationary point, radians: Newton's step of all ways together, less its
    sampling error, without the ways whose curvature and residual are 0 to rounding error (the axes of a linear
    autoencoder); single_angle: the same as if the ways did not act on each other; gradient: ‖G_j‖/(2σ_j²); unstable
    (m, 2): ways of negative curvature, as pairs of components, or −1 and a component for a way out of their span;
    joint (m, 2): the same for a joint move of several ways, which is named by the largest of them; unheld (m, 2): ways
    whose curvature and residual do not differ from 0 within their errors.
    """

    angle: np.ndarray
    single_angle: np.ndarray
    gradient: np.ndarray
    unstable: np.ndarray
    joint: np.ndarray
    unheld: np.ndarray

    def converged(self, tol: float) -> bool:
        """Return whether all components are within `tol` radians of a stable stationary point."""
        return not len(self.unstable) + len(self.joint) and bool((self.angle <= tol).all())

    def singly(self, tol: float) -> bool:
        """Return whether each way by itself says so: what ended a stage before there was an `ending`."""
        return not len(self.unstable) and bool((self.single_angle <= tol).all())

    @property
    def distance(self) -> tuple[int, float]:
        """The number of unstable ways, and the largest angle: of two states the lesser one is nearer."""
        return len(self.unstable) + len(self.joint), float(self.angle.max(initial=0.0))

    def facts(self, order: np.ndarray) -> dict[str, Any]:
        """Return the facts that a run stores, by name; components in their final order, which numbers the pairs."""
        place = np.append(np.argsort(order), -1)
        return {
            "relative_gradient": float(self.gradient.mean()),
            "relative_gradient_per_component": self.gradient[order],
            "angle": float(self.angle.max(initial=0.0)),
            "angle_per_component": self.angle[order],
            "unstable_pairs": np.sort(
                place[np.concatenate([self.unstable, self.joint])].reshape(-1, 2), axis=1
            ),
            "unheld_pairs": np.sort(place[self.unheld].reshape(-1, 2), axis=1),
        }


@dataclass(frozen=True)
class Single:
    """What the ways say one by one: the convergence, and for all ways whether they are unheld, and their errors.

    noise (k,): the part of each angle that the sampling error adds; beyond (k,): the angle out of the directions that
    were probed; sampled: whether these are not all rows.
    """

    found: Convergence
    unheld: np.ndarray
    error: np.ndarray
    noise: np.ndarray
    beyond: np.ndarray
    sampled: bool


def singly(found: Curvatures, gradient: np.ndarray, out: np.ndarray, sampled: bool, groups: int) -> Single:
    """Return what the ways say as if they did not act on each other.

    out (k,): ‖gradient‖ outside the probed directions, divided by 2σ_j².
    """
    from scipy.special import stdtrit  # scipy.stats would take half a second to import

    k, count = len(gradient), len(found.curvature)
    none = np.zeros(k)
    if not count:
        of_none = Convergence(none, none, gradient, found.moves, found.moves, found.moves)
        return Single(of_none, np.zeros(0, bool), found.error, none, none, sampled)
    unlikely = -float(stdtrit(groups - 1, HELD_LEVEL / count))
    likely = -float(stdtrit(groups - 1, HELD_LEVEL))
    unstable = found.curvature < -np.maximum(unlikely * found.error, FLAT)
    unsure = np.abs(found.curvature) <= np.maximum(likely * found.error, FLAT)
    still = np.abs(found.residual) <= np.maximum(likely * found.residual_error, FLAT**2)
    flat = (np.abs(found.curvature) <= FLAT) & still
    unheld = unsure & still
    held = np.maximum(np.abs(found.curvature), np.finfo(float).tiny)
    # Where the curvature is not positive, a small residual means nothing: the stable point is elsewhere.
    angle = np.where(found.curvature <= 0, QUARTER, np.minimum(np.abs(found.residual) / held, QUARTER))
    # Bounded: a large error of one nearly flat way must not cancel the angles of other ways.
    noise = np.minimum(found.residual_error / held, MOST_NOISE) if sampled else 0 * angle
    least = (
        np.median(np.abs(found.curvature[found.moves[:, 0] < 0])) if (found.moves[:, 0] < 0).any() else 1.0
    )
    beyond = out / max(float(least), FLAT)
    squares = np.square(angle) - np.square(noise)
    total = squared_angles(found, squares, ~flat, k) + np.square(beyond)
    angle = np.minimum(np.sqrt(np.maximum(total, 0.0)), QUARTER)
    nowhere = found.moves[:0]
    convergence = Convergence(angle, angle, gradient, found.moves[unstable], nowhere, found.moves[unheld])
    shaken = np.sqrt(np.where(flat, 0.0, np.square(noise)) @ np.square(found.share))
    return Single(convergence, unheld, found.error, shaken, beyond, sampled)


def jointly(
    single: Single, local: LocalField, modes: Modes, measured: np.ndarray, rows: np.ndarray
) -> Convergence:
    """Return the convergence of all ways together, whose curvatures are averaged over the projected rows.

    measured (q, k): the field over all rows.
    """
    along = modes.along(measured)
    # Zero to rounding error: of all rows the sampling error does not count.
    used = (np.abs(modes.curvature) > FLAT) | (np.abs(along) > FLAT**2)
    floor = np.full(len(used), FLAT)
    if single.sampled:
        used &= ~modes.of_ways(single.unheld, False)
        floor = np.maximum(FLAT, modes.of_ways(single.error, 0.0))
    system = Coupled.over(local, rows, modes, used, floor, exact=not single.sampled)
    J = system.jacobian()
    angle = newton_step(system, J, along)[1]
    squares = np.square(angle) - np.square(single.noise) + np.square(single.beyond)
    angle = np.minimum(np.sqrt(np.maximum(squares, 0.0)), QUARTER)
    leaves = J.unstable(UNSTABLE) if used.any() else None
    joint = single.found.joint if leaves is None else system.largest(leaves)
    return replace(single.found, angle=angle, joint=joint)


def squared_angles(found: Curvatures, squares: np.ndarray, keep: np.ndarray, k: int) -> np.ndarray:
    """Return for each component the sum over its ways of the squared angle along each, (k,), radians²."""
    total = np.zeros(k + 1)  # the last entry collects −1, the directions out of the span
    for side in (0, 1):
        np.add.at(total, found.moves[:, side], np.square(found.lean))
    return total[:k] + np.where(keep, squares, 0.0) @ np.square(found.share)


def larger_of(first: Convergence, second: Convergence) -> Convergence:
    """Return the larger angle of each component, and the ways of both."""
    return Convergence(
        np.maximum(first.angle, second.angle),
        np.maximum(first.single_angle, second.single_angle),
        np.maximum(first.gradient, second.gradient),
        np.concatenate([first.unstable, second.unstable]),
        np.concatenate([first.joint, second.joint]),
        np.concatenate([first.unheld, second.unheld]),
    )
