"""solver=newton from a source to a solution: covariance, projection on the leading eigenvectors, Newton steps, final
order and signs."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.solution import Solution, deviations, finalise
from sigmapca_cli.solvers.main_loss.automatic import start_and_a
from sigmapca_cli.solvers.main_loss.several import Several, solve_from
from sigmapca_cli.solvers.rows.projection import Facts, nearest_rotation, project

Array = np.ndarray

log = logging.getLogger("sigmapca")


def newton_fit(
    source: Source,
    k: int,
    a: float | str | Array = "auto",
    nonlinearity: str = "scaled_tanh",
    derivative: str = "true",
    *,
    polish: bool = False,
    start: Array | None = None,
    starts: int = 1,
    clip: float | None = None,
    a_from: str = "independence",
    **settings: Any,
) -> tuple[Solution, Facts]:
    """Return W = P·R that solves the main loss on a source, P the k leading eigenvectors.

    Parameters
    ----------
    source : Source
        The data; rows are streamed once, into one float32 (n, k) matrix.
    k : int
        How many components.
    a : float, ndarray of shape (k,) or "auto"
        Scale of h.
    nonlinearity : str
        Name of h, which has a score φ.
    derivative : {"true", "one"}
        Whether h′ is itself or 1.
    polish : bool
        Whether W then leaves the span of P for the stationary point of the whole gradient (`solvers.newton.polish`).
    start : ndarray of shape (p, k), optional
        Filters to start from, taken to the nearest orthonormal ones in the span of P.
    starts : int
        Number of starts (`several.solve_from`); the solution with the greatest J is kept.
    clip : float, optional
        Quantile of the row norms beyond which rows are drawn in (`solvers.rows.projection`).
    a_from : {"independence", "sign"}
        How a="auto" chooses: at the answer of solver=independence, where the steps then start (`automatic`), or while
        they run, by the sign of each component's certificate, as older versions did.
    **settings : Any
        Those of the solver: tol, max_iter and threads of `solvers.newton.solve.solve`.

    Returns
    -------
    solution : Solution
        Filters, σ, encoder and decoder, by decreasing variance.
    facts : dict
        Whether it converged, residual and number of iterations; more with polish or several starts.

    Raises
    ------
    InputError
        If the data or a setting cannot be used.

    Notes
    -----
    The start is the PCA solution unless given, so two calls return the same. The equations are in docs/solver.md.
    """
    P, Y, C, notes = project(source, k, clip)
    R, at = None if start is None else nearest_rotation(P, start), None
    threads = settings.get("threads")
    if isinstance(a, str) and a_from == "independence":
        at = start_and_a(Y, derivative, patches=source.patch_shape is not None, threads=threads)
        a, R = at.a, at.R if R is None else R
    found = solve_from(Y, starts, start=R, a=a, nonlinearity=nonlinearity, derivative=derivative, **settings)
    result = found.result
    if at is not None and (words := at.words(result.R)):
        notes.append(words)
    facts = _facts(found, notes)
    W = P @ result.R
    if polish:
        from sigmapca_cli.solvers.newton.polish import polish as leave_subspace

        W, more = leave_subspace(W, C, source, result, nonlinearity, derivative, count=threads)
        facts.update(more)
    solution = finalise(W, C, each={"a": result.a})
    return solution, {**facts, "unheld_pairs": solution.pairs(result.loose)}


def lica_fit(
    source: Source, k: int, *, starts: int = 1, clip: float | None = None, **settings: Any
) -> tuple[Solution, Facts]:
    """Solve linear ICA: whitening by linear PCA, then a rotation V of unit-variance components by the same solver.

    σ = 1 for every component, so variance no longer distinguishes them. The score is tanh with the sign of each
    component's m − c: the stationary points are those of FastICA's symmetric iteration with the log cosh
    contrast.
    """
    P, Y, C, notes = project(source, k, clip)
    sigma = deviations(P, C)
    whitened = (Y / sigma).astype(Y.dtype)
    found = solve_from(whitened, starts, nonlinearity="logcosh", **settings)
    solution = finalise(P, C, found.result.R)
    return solution, {**_facts(found, notes), "unheld_pairs": solution.pairs(found.result.loose)}


def _facts(found: Several, notes: list[str]) -> Facts:
    result = found.result
    for note in notes + result.notes:
        log.warning("solver newton: %s", note)
    facts: Facts = {
        "converged": result.converged,
        "relative_gradient": result.relative_residual,
        "residual": result.residual,
        "iterations": result.iterations,
    }
    if found.starts == 1:
        return facts
    return {
        **facts,
        "starts": found.starts,
        "starts_agreeing": found.agreeing,
        "solutions": found.solutions,
        "solutions_cosine": found.farthest,
    }
