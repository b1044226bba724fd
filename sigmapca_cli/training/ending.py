"""The end of a run whose steps leave it short of its stationary point: full-batch Newton steps from its own answer.

The field is averaged over all rows, or many of them, so nothing of what the stochastic steps found is forgotten. Each
step is Newton's step of all ways together, guarded: along a way of negative curvature it leads away, as the flow does
(`krylov`). The curvatures of the ways scale it, so that small components and large ones come to rest alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training.arrays import Array, as_numpy, made_like
from sigmapca_cli.training.convergence import FLAT, JOINT, ROWS, about_the_mean, mean_size, random_groups
from sigmapca_cli.training.coupled import PRODUCTS, UNSTABLE, Coupled, Modes, newton_step
from sigmapca_cli.training.curvature import responses_at
from sigmapca_cli.training.fields import fields_of
from sigmapca_cli.training.local import LocalField, frame

FEWEST, MOST = 15, 100
"""Number of steps at most: MOST, and fewer, down to FEWEST, where rows are many."""
SHARE = 0.3
"""Multiplications for the Jacobian of one step, as a share of those that a verdict takes."""
WORK = 3e10
"""Multiplications that all steps may take, some seconds, as long as more than FEWEST steps are made."""
ENOUGH = 0.1
"""Length of a Newton step, as a share of `tol`, at which a run has come to rest."""
TRUST, LEAST_TRUST = 0.3, 0.02
"""Largest angle of a component in one step, radians, and what it is halved to while steps oppose each other. A saddle
is left by a step of the largest angle."""
KEPT = 0.3
"""Angle that the filters may turn by, radians, before the curvatures of the ways are measured again."""
GROUPS, NEAR = 8, 4096
"""Number of groups of rows, and of all their rows, that these curvatures are averaged over."""
STEPPED = 1 << 17
"""Number of rows that the field of a step is averaged over at most, one from each stretch."""
LARGEST = 2e8
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
    held = source.n * (cfg.k + 16.0) <= LARGEST
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
        rows = rows if len(rows) <= STEPPED else rows[one_per_stretch(len(rows), STEPPED)]
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

    near (G, b, m): the rows that the curvatures of the ways are averaged over.
    """
    count = int(SHARE * JOINT / (PRODUCTS * 3 * local.start.size * local.field.cost))
    precision = "float64" if len(rows) <= ROWS else "float32"
    some = rows if count >= len(rows) else rows[one_per_stretch(len(rows), count)]
    each = 3.0 * local.start.size * local.field.cost * (len(rows) + PRODUCTS * len(some))
    most = int(min(max(WORK / each, FEWEST), MOST))
    modes, trust, last = None, TRUST, None
    for step in range(most):
        if modes is None:
            local, turned = local.around(local.start), 0.0
            modes = modes_at(local, near, rigid)
            last = None
        along = modes.along(local.mean(local.start, rows, precision))
        used = (np.abs(modes.curvature) > FLAT) | (np.abs(along) > FLAT**2)
        if not used.any() or not np.isfinite(along).all():
            return local, step
        system = Coupled(partial(local.mean, z=some), local.start, modes, used, FLAT)
        J = system.jacobian()
        move, angles = newton_step(system, J, along)
        resting = angles.max() <= ENOUGH * tol
        leaves = J.unstable(UNSTABLE) if resting else None
        if resting and leaves is None:
            return local, step
        if leaves is not None:
            move = system.moved(leaves)
        elif angles.max() > TRUST:
            move = system.moved(J.guarded(along[used]))
        if last is not None:
            cosine = (move * last).sum() / max(np.linalg.norm(move) * np.linalg.norm(last), 1e-300)
            trust *= 0.5 if cosine < -0.2 else 1.5 if cosine > 0.2 else 1.0
            trust = min(max(trust, LEAST_TRUST), TRUST)
        longest = float(np.linalg.norm(move, axis=0).max())
        move *= TRUST / longest if leaves is not None else min(1.0, trust / max(longest, 1e-300))
        last, turned = move, turned + min(longest, trust)
        local = replace(local, start=kept(local.start, move, rigid))
        modes = None if turned > KEPT else modes
    return local, most


def modes_at(local: LocalField, near: Array, rigid: bool) -> Modes:
    """Return the ways and their curvatures at the filters of a local field."""
    return Modes.of(responses_at(partial(local.at, z=near), local.start, local.deviations(), rigid))


def kept(M: Array, move: Array, rigid: bool) -> Array:
    """Return M (q, k) moved, radians, with the norms it had, or orthonormal where a constraint keeps it so."""
    norms = np.linalg.norm(M, axis=0)
    moved = M + move * norms
    return nearest_orthonormal(moved) if rigid else moved * (norms / np.linalg.norm(moved, axis=0))
