"""solver=moments without rows: from fourth moments that were summed elsewhere (`sigmapca partial --axes`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.solution import Solution, finalise
from sigmapca_cli.processes import mapped
from sigmapca_cli.solvers import ascent
from sigmapca_cli.solvers.fourth import ENTRIES, Fourth, pairs_of, unique_products
from sigmapca_cli.solvers.inputs import checked_start, in_order
from sigmapca_cli.solvers.maximum import LAMBDA, climbs, compare_starts
from sigmapca_cli.solvers.moments_fit import first_rotation
from sigmapca_cli.solvers.parallel import threads as on_threads
from sigmapca_cli.sources.statistics import check_k

Array = np.ndarray
TASK = 1 << 16
"""Largest number of rows that one thread sums by itself: fixed, so that the order of the sum is fixed."""
ENTRIES_OF_ROWS = 1 << 22
"""Largest number of entries of these rows: 32 MB."""

log = logging.getLogger("sigmapca")


def summed(blocks: Iterable[Array], k: int) -> tuple[int, Array, Array]:
    """Return the number of rows z (m, k), Σzᵀz (k, k) and Σ of their `unique_products` in one vector, float64."""
    size = max(ENTRIES // pairs_of(k), 64)

    def part(z: Array) -> tuple[int, Array, Array]:
        total: list[Array] | None = None
        for start in range(0, len(z), size):
            found = unique_products(z[start : start + size])
            total = list(found) if total is None else [a + b for a, b in zip(total, found, strict=True)]
        return len(z), z.T @ z, np.concatenate([one.ravel() for one in total or []])

    n, second, products = 0, np.zeros((k, k)), np.zeros(0)
    for count, square, fourth in mapped(part, (z for z in blocks if len(z))):
        n, second = n + count, second + square
        products = fourth if not len(products) else products + fourth
    return n, second, products


def fit_sums(
    source: Any,
    k: int,
    lam: float | str = LAMBDA,
    *,
    whiten: bool = False,
    start: Array | None = None,
    seed: int | None = None,
    starts: int = 1,
    tol: float = 1e-5,
    max_iter: int = 200,
    threads: int | None = None,
    clip: float | None = None,
) -> tuple[Solution, dict[str, Any]]:
    """Return what `moments_fit` returns, for a source that holds fourth moments in its leading axes, and no rows.

    What needs rows is left out: the standard errors of the angles, which pairs are identified, and which rows carry
    the moments. Raise InputError for solver.clip, lam=auto, and more components than there are axes.
    """
    sums, (_, C) = source.fourth, source.covariance()
    refuse_without_rows(k, lam, clip, sums.k)
    assert not isinstance(lam, str)
    check_k(k, source.n, source.p, source.leading_axes(k).rank)
    P = np.ascontiguousarray(sums.axes[:, :k])
    view = Fourth.of_sums(sums.second, sums.products, sums.sigma, sums.n).leading(k)
    if whiten:
        view = view.scaled(1 / np.sqrt(np.diag(view.C)))
    view = view.scaled(np.full(k, 1 / np.sqrt(np.trace(view.C) / k)))
    R = checked_start(first_rotation(P, start, seed), k)
    with on_threads(threads):
        ends, (R, end, history) = climbs(view, R, lam, tol, max_iter, starts)
    R, _ = in_order(R, view.C)
    agreeing, notes = compare_starts(ends)
    if not end.converged:
        notes.append(f"not converged: after {len(history)} steps the next step is {end.angle:.1e} rad")
    for note in notes:
        log.warning("solver moments: %s", note)
    point = view.at(R)
    each = {"kurtosis": point.kappa / point.sigma**4}
    solution = finalise(P, C, R, each=each) if whiten else finalise(P @ R, C, each=each)
    return solution, {
        "converged": end.converged,
        "relative_gradient": end.angle,
        "iterations": len(history),
        "contrast": ascent.value(view, R, lam),
        "lam": lam,
        "starts_agreeing": agreeing,
    }


def refuse_without_rows(k: int, lam: float | str, clip: float | None, axes: int) -> None:
    """Raise InputError for a setting that needs rows, or for more components than the sums have axes."""
    if clip is not None or isinstance(lam, str):
        what = "solver.clip" if clip is not None else f"solver.lam={lam}"
        raise InputError(
            f"{what} needs rows, and data=moments has none: drop it, or read the rows with data=array"
        )
    if not (np.isfinite(lam) and lam > 0):
        raise InputError(f"solver.lam={lam:g}: must be a finite number > 0")
    if k > axes:
        raise InputError(
            f"k={k}: the fourth moments of data.path are those of {axes} axes; lower k, or make them again with "
            f"sigmapca partial --axes -k {k}"
        )


def projected_blocks(source: Any, basis: Any, P: Array, sigma: Array) -> Iterable[Array]:
    """Yield the rows of a source, standardised as those of `basis` and centred on its mean: z = xP/σ (m, k)."""
    A = P if basis.whitening is None else basis.whitening @ P
    A = basis.gain()[:, None] * A / sigma
    mean = basis.raw_moments().mean
    for raw in source.raw_blocks(max(1, min(TASK, ENTRIES_OF_ROWS // len(A)))):
        yield (raw - mean) @ A
