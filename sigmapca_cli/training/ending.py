"""The end of a run whose steps leave it short of its stationary point: full-batch Newton steps from its own answer.

The field is averaged over all rows, or many of them, so nothing of what the stochastic steps found is forgotten. Each
step is Newton's step of all ways together, guarded: along a way of negative curvature it leads away, as the flow does
(`krylov`). The curvatures of the ways scale it, so that small components and large ones come to rest alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sigmapca_cli.data.source import Source
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.training.arrays import Array, as_numpy, made_like
from sigmapca_cli.training.assess import JOINT, about_the_mean, mean_size, random_groups
from sigmapca_cli.training.coupled import PRODUCTS
from sigmapca_cli.training.descent import Descent
from sigmapca_cli.training.fields import fields_of
from sigmapca_cli.training.local import LocalField, frame

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
