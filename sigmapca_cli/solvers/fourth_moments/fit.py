"""solver=moments from a source to a solution: covariance, projection, the climb, final order and signs."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from sigmapca_cli.data.row_order import order_in
from sigmapca_cli.data.source import Source
from sigmapca_cli.linalg.rotations import random_orthonormal
from sigmapca_cli.methods.solution import Solution, finalise
from sigmapca_cli.solvers.fourth_moments.choose import chosen_lam
from sigmapca_cli.solvers.fourth_moments.maximum import LAMBDA, Maximum, maximise
from sigmapca_cli.solvers.rows.parallel import std_of
from sigmapca_cli.solvers.rows.projection import Facts, nearest_rotation, project
from sigmapca_cli.system.row_shards import agreed

Array = np.ndarray

log = logging.getLogger("sigmapca")


def moments_fit(
    source: Source,
    k: int,
    lam: float | str = LAMBDA,
    *,
    whiten: bool = False,
    start: Array | None = None,
    seed: int | None = None,
    clip: float | None = None,
    **settings: Any,
) -> tuple[Solution, Facts]:
    """Return W = P·R with the greatest F found on a source, P the k leading eigenvectors.

    Parameters
    ----------
    source : Source
        The data; rows are streamed once, into one float32 (n, k) matrix.
    k : int
        How many components.
    lam : float or "auto"
        Weight λ of the cumulants in F; "auto" takes the one at which two halves of the rows agree best.
    whiten : bool
        Linear ICA: components of unit variance leave Σσ⁴ constant, and the sum of |cumulants| decides.
    start : ndarray of shape (p, k), optional
        Filters to start from, taken to the nearest orthonormal ones in the span of P.
    seed : int, optional
        Start at a random rotation of this seed, where no start is given; else at the principal axes.
    clip : float, optional
        Quantile of the row norms beyond which rows are drawn in (`solvers.rows.projection`).
    **settings : Any
        Those of the solver: starts, tol, max_iter and threads of `solvers.fourth_moments.maximum.maximise`.

    Returns
    -------
    solution : Solution
        Filters, σ, encoder and decoder, by decreasing variance.
    facts : dict
        Whether it converged, the angle still to go in radians, number of iterations, F, λ and agreeing starts.

    Raises
    ------
    InputError
        If the data or a setting cannot be used.

    Notes
    -----
    F = Σσ⁴ + λΣ|cum₄|; the derivation is in docs/solver.md.
    """
    P, Y, C, notes = project(source, k, clip)
    R = first_rotation(P, start, seed)
    if whiten:
        Y = (Y / std_of(Y)).astype(Y.dtype)
    if isinstance(lam, str):
        lam, agreement = chosen_lam(Y, in_time=agreed(order_in(source)).in_stretches)
        log.info("solver moments: lam=%g, at which halves of the rows agree to %.4f", lam, agreement)
    result = maximise(Y, lam, start=R, **settings)
    for note in notes + result.notes:
        log.warning("solver moments: %s", note)
    each = {"filter_error": result.filter_error, "carrying_rows": result.carrying}
    solution = finalise(P, C, result.R) if whiten else finalise(P @ result.R, C, each=each)
    return solution, {**facts(result), "unheld_pairs": solution.pairs(~result.fixed)}


def first_rotation(P: Array, start: Array | None, seed: int | None) -> Array | None:
    """Return the rotation nearest to filters `start` in the span of P (p, k), else a random one, else None."""
    if start is not None:
        return nearest_rotation(P, start)
    return None if seed is None else random_orthonormal(P.shape[1], P.shape[1], seed)


def facts(result: Maximum) -> Facts:
    """Return the facts that a run stores; relative_gradient is the largest angle of the next Newton step, radians."""
    return {
        "converged": result.converged,
        "relative_gradient": result.angle,
        "iterations": result.iterations,
        "contrast": result.value,
        "lam": result.lam,
        "starts_agreeing": result.agreeing,
    }
