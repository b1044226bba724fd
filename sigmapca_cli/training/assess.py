"""Measure the convergence of a state on its data: the field and its curvatures, averaged over rows.

Cost and possible errors: docs/convergence.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from sigmapca_cli.data.moments.implicit import Covariance
from sigmapca_cli.data.source import Source
from sigmapca_cli.training.arrays import Array
from sigmapca_cli.training.convergence import Convergence, jointly, larger_of, singly
from sigmapca_cli.training.coupled import PRODUCTS, Modes
from sigmapca_cli.training.curvature import curvatures_of, responses_at
from sigmapca_cli.training.fields import Field, fields_of
from sigmapca_cli.training.local import LocalField, frame, held_rows

ASSESSED_ROWS = 65_536
"""Number of rows that the gradient is averaged over, one per stretch; all rows of smaller data."""
GROUPS = 32
"""Number of groups of these rows. Their spread gives the error of a sum over part of the rows."""
PROBED = (1024, 8192)
"""Smallest and largest number of rows that the curvatures are averaged over."""
SHARE, CHEAP = 0.05, 2e10
"""The curvatures may take SHARE of the multiplications of the training, or CHEAP (half a second) if that is more."""
JOINT = 1e10
"""Multiplications that the Newton step of all ways may take: they limit the rows that its Jacobian is averaged over."""
SLICE = 4096
"""Number of features of a gradient that are worked on at once."""


def assess(
    method: Any,
    state: dict[str, Array],
    source: Source,
    *,
    rows: int = ASSESSED_ROWS,
    work: float = 0.0,
    every_row: bool = False,
    enough: float = np.inf,
) -> Convergence:
    """Return the convergence of a state on its data.

    rows: largest number of rows used, half of it if gradients are computed by autograd. work: multiplications that
    training took; a share of it limits the rows that the curvatures are averaged over. every_row: average the field
    within the span over all rows, as steps that were made with all of them ask for. enough: angle above which the ways
    are not asked all together, which takes half of the time. With two layers the larger angle of each component counts.
    Works on copies: the moving averages of the run do not change.
    """
    count = min(rows if isinstance(state["W"], np.ndarray) else rows // 2, source.n)
    groups = int(np.clip(count // 8, 2, GROUPS))
    method, source = about_the_mean(method, source)
    parts = random_groups(source.n, count, groups)
    C = source.covariance()[1]
    with np.errstate(all="ignore"):
        found = [
            assess_field(field, source, parts, C, count < source.n, work, every_row, enough)
            for field in fields_of(method, state, C, mean_size(source, parts))
        ]
    # The larger angle of each component over the layers, and the ways of all layers.
    return reduce(larger_of, found)


def about_the_mean(method: Any, source: Source) -> tuple[Any, Source]:
    """Return the method and the rows for the field: centred, except for losses that subtract the mean themselves."""
    model = getattr(method, "model", None)
    if model is None or not hasattr(model, "centring"):
        return method, source.centred()
    if model.mean == "ema":
        method = replace(method, model=replace(model, mean="batch"))
    return method, source.centred() if model.centring in ("batch", "data") else source


def random_groups(n: int, count: int, groups: int) -> list[np.ndarray]:
    """Return `groups` sorted sets of row numbers: one row from each of `count` stretches of n, assigned at random.

    A constant stride could match the width of an image, and a group would then hold one column of it. With count = n
    every row is in a group. The sizes of the groups differ by at most one.
    """
    random = np.random.default_rng(0)
    edges = np.linspace(0, n, count + 1)
    index = (edges[:-1] + random.random(count) * np.diff(edges)).astype(np.int64)
    index = np.minimum(index, n - 1) if count < n else np.arange(n)
    return [np.sort(part) for part in np.array_split(random.permutation(index), groups)]


def mean_size(source: Source, parts: list[np.ndarray]) -> float:
    """Return E‖x‖ over the rows of the first group."""
    return float(np.linalg.norm(source.take(parts[0]).astype(np.float64), axis=1).mean())


def assess_field(
    field: Field,
    source: Source,
    parts: list[np.ndarray],
    C: Covariance,
    sampled: bool,
    work: float,
    every_row: bool,
    enough: float,
) -> Convergence:
    """Return the convergence of one trained matrix."""
    A = field.parameter
    k = A.shape[1]
    whole = np.empty((len(parts), *A.shape))
    rows_of = held_rows(source, parts)
    for number in range(len(parts)):
        whole[number] = field.at(A, rows_of(number)[None])[0]
    # Group sizes differ by one row: with these weights the mean over groups is the mean over rows.
    sizes = np.array([len(part) for part in parts], float)
    whole *= (sizes / sizes.mean())[:, None, None]
    Q = frame(field.directions, whole, source, field.inner)
    local = LocalField.of(field, Q, C)
    passes = 4 * k + (0 if field.inner else max(k, Q.shape[1] - k))
    most = max(SHARE * work, CHEAP) / (passes * 3 * Q.shape[1] * k)
    each = max(1, min(len(parts[-1]), int(np.clip(most, PROBED[0], PROBED[1] // field.cost)) // len(parts)))
    near = [np.linspace(0, len(part) - 1, each).astype(int) for part in parts]
    single = Q.astype(np.float32)
    z = np.stack([source.take(part[some]) @ single for part, some in zip(parts, near, strict=True)])
    measured = (local.B if field.inner else Q).T @ whole
    responses = responses_at(lambda M: local.at(M, z), local.start, field.deviations(C), field.rigid)
    norms, sigma = responses.norms, responses.sigma
    sampled = sampled or field.draws
    squares = squares_outside(whole, local.B if field.inner else Q, measured, sampled)
    out = np.sqrt(np.maximum(squares, 0)) * norms / (2 * sigma**2)
    gradient = np.linalg.norm(whole.mean(0), axis=0) * norms / (2 * sigma**2)
    ways = curvatures_of(responses, measured)
    verdict = singly(ways, gradient, out, sampled, len(parts))
    usable = len(ways.curvature) and np.isfinite(ways.curvature).all()
    if field.draws or not usable or not verdict.found.singly(enough):
        return verdict.found
    count = JOINT / (PRODUCTS * 3 * Q.shape[1] * k * field.cost)
    groups = int(np.clip(np.ceil(count / len(parts[0])), 1, len(parts)))
    rows = np.concatenate([rows_of(g) @ single for g in range(groups)])
    field_now = measured.mean(0)
    if every_row and sampled:
        projected = list(source.project(single))
        means = [local.mean(local.start, some, "float32") for some in projected]
        field_now = np.average(means, axis=0, weights=[len(some) for some in projected])
        verdict = replace(verdict, noise=0 * verdict.noise, unheld=verdict.unheld & False)
    return jointly(verdict, local, Modes.of(responses), field_now, rows)


def squares_outside(G: np.ndarray, B: np.ndarray, inside: np.ndarray, sampled: bool) -> np.ndarray:
    """Return Σ over features of the squared mean of the part of G (groups, p, k) outside the span of B (p, m), (k,).

    inside (groups, m, k): G in the coordinates of B. sampled: less what the sampling error of the mean adds. Features
    are taken SLICE at a time, for the memory of many.
    """
    squares = np.zeros(G.shape[2])
    for start in range(0, G.shape[1], SLICE):
        part = slice(start, start + SLICE)
        rest = G[:, part] - B[part] @ inside
        found = np.square(rest.mean(0)).sum(0)
        if sampled:
            found = found - rest.var(0, ddof=1).sum(0) / len(rest)
        squares = found if G.shape[1] <= SLICE else squares + found
    return squares
