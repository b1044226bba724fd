"""The end of a run whose steps leave it short of its stationary point: full-batch Newton steps from its own answer.

The field is averaged over all rows, or many of them, so nothing of what the stochastic steps found is forgotten. Each
step is Newton's step of all ways together, guarded: along a way of negative curvature it leads away, as the flow does
(`krylov`). The curvatures of the ways scale it, so that small components and large ones come to rest alike.

The Jacobian takes many passes: it is measured from part of the rows, kept in its Krylov space, and corrected by what
each step shows of the field (Broyden 1965), as the last steps of solver=newton are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.solvers.newton.krylov import MatrixFreeJacobian
from sigmapca_cli.solvers.newton.steps import adapted
from sigmapca_cli.training.arrays import Array, as_numpy, made_like
from sigmapca_cli.training.assess import ASSESSED_ROWS, JOINT, about_the_mean, mean_size, random_groups
from sigmapca_cli.training.convergence import FLAT
from sigmapca_cli.training.coupled import PRODUCTS, UNSTABLE, Coupled, Modes
from sigmapca_cli.training.curvature import responses_at
from sigmapca_cli.training.fields import fields_of
from sigmapca_cli.training.local import LocalField, frame

ENOUGH = 0.1
"""Length of a Newton step, as a share of `tol`, at which a run has come to rest."""
TRUST = 0.1
"""Largest angle of a component in one step, radians. Steps of 0.3 rad multiplied the residual on photographs by ten
before it fell."""
ESCAPE = 0.3
"""Angle of the step that leaves a saddle, radians."""
JACOBIAN_KEPT, MODES_KEPT = 0.3, 0.6
"""Angles that the filters may turn by, radians, before the Jacobian, and the curvatures of the ways, are measured
again."""
CORRECTED = 12
"""Number of steps that one Jacobian is corrected for."""
LOOSE = 0.05
"""Fraction of the field that a step may leave on the way; at rest the equations are solved to `coupled.ACCURACY`."""


@dataclass
class Descent:
    """The steps so far.

    local: the field with the filters as they are now; rows (n, m): projected rows that it is averaged over; some: those
    for the Jacobian; near (G, b, m): those for the curvatures of the ways; rigid: whether a constraint keeps the
    filters orthonormal; evaluated: number of rows at which the field was computed; last: whether no other rows follow,
    so that the point of rest must be stable; fine: whether the equations are solved to `coupled.ACCURACY`.
    """

    local: LocalField
    rows: Array
    some: Array
    near: Array
    rigid: bool
    evaluated: int = 0
    modes: Modes | None = None
    J: MatrixFreeJacobian | None = None
    used: Array = field(default_factory=lambda: np.zeros(0, bool))
    step: tuple[Array, Array, Array] | None = None
    trust: float = TRUST
    turned: float = 0.0
    corrected: int = 0
    last: bool = True
    fine: bool = False

    def use(self, rows: Array, some: Array, last: bool) -> None:
        """Average the field over `rows` from now on, and its Jacobian over `some`; `last`: no other rows follow."""
        self.rows, self.some, self.last, self.J, self.fine = rows, some, last, None, False

    def advance(self, tol: float) -> bool:
        """Make one step; return False, and make none, at rest at a stable point or where the field is not finite."""
        modes = self._modes()
        along = modes.along(self._mean(self.rows))
        if not np.isfinite(along).all():
            return False
        exact = None
        if self.J is None:
            self.used = (np.abs(modes.curvature) > FLAT) | (np.abs(along) > FLAT**2)
            if not self.used.any():
                return False
            exact = self._system(modes).jacobian()
            self.J = (exact if self.fine else replace(exact, accuracy=LOOSE)).kept(along[self.used])
            self.evaluated += len(self.some) * PRODUCTS // 2
            self.corrected = 0
        elif self.step is not None:
            before, theta, _ = self.step
            self.J, self.corrected = self.J.corrected(along[self.used] - before, theta), self.corrected + 1
        return self._moved(along[self.used], self._system(modes), exact, tol)

    def _moved(self, S: Array, system: Coupled, exact: MatrixFreeJacobian | None, tol: float) -> bool:
        assert self.J is not None
        theta, guarded = self.J.newton_and_guarded(S)
        longest = longest_of(system.moved(theta))
        if longest <= ENOUGH * tol:
            if not self.last:
                return False
            if exact is None or not self.fine:
                # Only a Jacobian that was measured here may say that the point is stable.
                self.J, self.fine = None, True
                return self.advance(tol)
            leaves = exact.unstable(UNSTABLE)
            if leaves is None:
                return False
            self._take(S, leaves * ESCAPE / longest_of(system.moved(leaves)), system)
            self.J = self.modes = None
            return True
        if longest > TRUST:
            theta = guarded()
            if self.step is not None:
                self.trust = adapted(self.trust, system.moved(theta), self.step[2], TRUST)
        self._take(S, theta * min(1.0, self.trust / longest_of(system.moved(theta))), system)
        return True

    def _take(self, S: Array, theta: Array, system: Coupled) -> None:
        """Move the filters by theta; forget what was measured too far away."""
        move = system.moved(theta)
        before, angle = self.turned, longest_of(move)
        self.turned += angle
        self.step = (S, theta, move)
        self.local = replace(self.local, start=kept(self.local.start, move, self.rigid))
        if self.turned > MODES_KEPT:
            self.modes = self.J = None
        elif self.corrected >= CORRECTED or self.turned // JACOBIAN_KEPT > before // JACOBIAN_KEPT:
            self.J = None

    def _modes(self) -> Modes:
        if self.modes is None:
            self.local, self.turned, self.step = self.local.around(self.local.start), 0.0, None
            found = responses_at(
                partial(self.local.at, z=self.near), self.local.start, self.local.deviations(), self.rigid
            )
            self.modes = Modes.of(found)
            q, k = self.local.start.shape
            self.evaluated += (4 * k + q - k) * self.near.shape[0] * self.near.shape[1]
        return self.modes

    def _system(self, modes: Modes) -> Coupled:
        return Coupled.over(self.local, self.some, modes, self.used, FLAT)

    def _mean(self, rows: Array) -> Array:
        self.evaluated += len(rows)
        return self.local.mean(self.local.start, rows, "float64" if len(rows) <= ASSESSED_ROWS else "float32")


def longest_of(move: Array) -> float:
    """Return the largest angle (radians) of a component in a move (q, k)."""
    return max(float(np.linalg.norm(move, axis=0).max()), float(np.finfo(float).tiny))


def kept(M: Array, move: Array, rigid: bool) -> Array:
    """Return M (q, k) moved, radians, with the norms it had, or orthonormal where a constraint keeps it so."""
    norms = np.linalg.norm(M, axis=0)
    moved = M + move * norms
    return nearest_orthonormal(moved) if rigid else moved * (norms / np.linalg.norm(moved, axis=0))


FEWEST, MOST = 15, 100
"""Number of steps at most: MOST, and fewer, down to FEWEST, where rows are many."""
SURE = 0.25
"""A run takes these steps unless its angle is below this share of `tol`: near `tol` the angle is no sure bound, and
from there they are few. Of 73 runs three with angles of 0.03 to 0.09 were turned by 0.12 to 0.13 by the flow."""
SHARE = 0.3
"""Multiplications for the Jacobian of one step, as a share of those that a verdict takes."""
WORK = 1e11
"""Multiplications that all steps may take, about ten seconds, as long as more than FEWEST steps are made."""
GROUPS, NEAR = 8, 4096
"""Number of groups of rows, and of all their rows, that these curvatures are averaged over."""
STEPPED = 1 << 17
"""Number of rows that the field of a step is averaged over first, one from each stretch; later steps take all."""
COARSE = 3.0
"""Angle to which these first steps go, as a multiple of `tol`: the rest of it is their sampling error."""
HELD_ENTRIES = 2e8
"""Largest number of entries of the projected rows that are held."""
KEEPING = ("unit_norm", "weight_norm", "symmetric", "gram_schmidt")
"""Constraints under which the angles of the filters are all that can change."""


def applies(cfg: Config, method: Any, source: Source) -> bool:
    """Return whether runs of this configuration end with full-batch steps.

    They do where nobody asked for a length (`ending`), one matrix is trained, and its field is a mean over the rows.
    """
    if cfg.ending != "full_batch" or cfg.steps or cfg.epochs is not None or cfg.keep != "last":
        return False
    objective = getattr(method, "objective", None)
    draws = objective is not None and "mask" in objective.needs
    constraint = getattr(method, "constraint", "unit_norm")
    held = source.n * (cfg.k + 16.0) <= HELD_ENTRIES
    return len(method.parameters) == 1 and not draws and constraint in KEEPING and held


def ended(method: Any, state: dict[str, Array], source: Source, tol: float) -> tuple[dict[str, Array], int]:
    """Return the state to which full-batch steps from this one lead, and how many they were."""
    method, source = about_the_mean(method, source)
    parts = random_groups(source.n, min(source.n, NEAR), GROUPS if source.n >= 8 * GROUPS else 2)
    C = source.covariance()[1]
    field = fields_of(method, state, C, mean_size(source, parts))[0]
    with np.errstate(all="ignore"):
        whole = np.stack([field.at(field.parameter, source.take(part)[None])[0] for part in parts])
        Q = frame(field.directions, whole, source, field.inner)
        rows = np.concatenate(list(source.project(Q.astype(np.float32))))
        near = equal_groups(rows, parts)
        local, steps = descended(LocalField.of(field, Q, C), rows, near, field.rigid, tol)
    A = local.B @ local.start
    name = method.trained
    moved = (A if field.inner else Q @ A).astype(as_numpy(state[name]).dtype)
    return {**state, name: made_like(state[name], moved)}, steps


def equal_groups(rows: Array, parts: list[Array]) -> Array:
    """Return the groups of rows (G, b, m), all of the size of the smallest."""
    least = min(len(part) for part in parts)
    return np.stack([rows[part[:least]] for part in parts])


def descended(local: LocalField, rows: Array, near: Array, rigid: bool, tol: float) -> tuple[LocalField, int]:
    """Follow guarded Newton steps on projected rows (n, m); return the field where they end, and their number.

    First on STEPPED of the rows, then on all of them. near (G, b, m): the rows that the curvatures of the ways are
    averaged over.
    """
    each = 3.0 * local.start.size * local.field.cost
    descent, step = Descent(local, rows, rows, near, rigid), 0
    for count, share, enough in ((STEPPED, SHARE, COARSE * tol), (len(rows), 1.0, tol)):
        if count > len(rows):
            continue
        some = spread_out(rows, int(share * JOINT / (PRODUCTS * each)))
        descent.use(spread_out(rows, count), some, count == len(rows))
        while step < MOST:
            spent = step >= FEWEST and descent.evaluated * each > WORK
            if spent or not descent.advance(enough):
                break
            step += 1
    return descent.local, step


def spread_out(rows: Array, count: int) -> Array:
    """Return `count` of the rows, one from each stretch, or all if they are fewer."""
    return rows if count >= len(rows) else rows[one_per_stretch(len(rows), count)]
