"""solver=independence from a source to a solution: covariance, projection, the descent, final order and signs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.data.row_order import ORDER_ROWS, RowOrder, pieces_of, row_order
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.solution import Solution, finalise
from sigmapca_cli.solvers.fourth_moments.fit import first_rotation
from sigmapca_cli.solvers.fourth_moments.maximum import LARGEST_TENSOR, maximise
from sigmapca_cli.solvers.independence.dependence import Dependence, dependence
from sigmapca_cli.solvers.independence.errors import errors
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import NEAR, STARTS, Independence, rows_for, solve
from sigmapca_cli.solvers.independence.spectra import are_long_enough, spectra_of, spectra_of_source
from sigmapca_cli.solvers.rows.parallel import spaced, std_of
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.solvers.rows.projection import LARGEST_ROWS, Facts, project
from sigmapca_cli.system.row_shards import agreed, own, place

Array = np.ndarray

log = logging.getLogger("sigmapca")

LIKELIHOOD = 1.0
"""τ of independent components: C₁ is their likelihood."""
CAUTIOUS = 0.05
"""τ of dependent ones: halves of six real tables agree within .02 of the best of τ = 0, .1 and 1 (docs/findings.md)."""
PATCHES = 0.1
"""τ of image patches, whose components are known to depend on each other."""
START_WORK = 2.0**38
"""Rows times the fourth power of the components, at most, of the start of image patches: a few seconds."""


@dataclass(frozen=True)
class Answer:
    """A minimum of C_τ, and the test of its components for dependence."""

    result: Independence
    test: Dependence


def independence_fit(
    source: Source,
    k: int,
    tau: float | str = "auto",
    *,
    whiten: bool = False,
    start: Array | None = None,
    seed: int | None = None,
    clip: float | None = None,
    **settings: Any,
) -> tuple[Solution, Facts]:
    """Return W = P·R with the smallest C_τ found on a source, P the k leading eigenvectors.

    Parameters
    ----------
    source : Source
        The data; rows are streamed once, into one (n, k) matrix.
    k : int
        How many components.
    tau : float or "auto"
        Weight τ of the negentropies; "auto" takes 1 for components that are independent as far as the rows tell, else
        0.05. Image patches, whose components are known to be dependent, take 0.1 at once.
    whiten : bool
        Linear ICA: of components of unit variance only the negentropies count.
    start : ndarray of shape (p, k), optional
        Filters to start from, taken to the nearest orthonormal ones in the span of P. Image patches start at the answer
        of solver=moments unless given, because C has several minima there.
    seed : int, optional
        Start at a random rotation of this seed, where no start is given.
    clip : float, optional
        Quantile of the row norms beyond which rows are drawn in (`solvers.rows.projection`).
    **settings : Any
        Those of the solver: starts, tol, max_iter and threads of `solvers.independence.solve.solve`.

    Returns
    -------
    solution : Solution
        Filters, σ, encoder and decoder, by decreasing variance; with each component its negentropy and the standard
        error of its filter in radians.
    facts : dict
        Whether it converged, the angle still to go in radians, number of steps, C, τ, the minima found, and the pairs
        of components that depend on each other.

    Raises
    ------
    InputError
        If the data or a setting cannot be used.

    Notes
    -----
    C_τ(R) = Σ log σ_i − τ·Σ J(z_i), J the negentropy; docs/concepts.md.
    """
    P, Y, C, notes = project(source, k, clip)
    for note in notes:
        log.warning("solver independence: %s", note)
    Y = (Y / std_of(Y) if whiten else Y).astype(np.float64)
    order, index, weights = order_in(source, P, Y), np.array(own(source.n)), None
    if source.n <= LARGEST_ROWS and source.copies is not None:
        index, weights = source.copies.distinct()
        Y, weights = Y[index], None if order.ordered else weights
    spectra = spectra_in(source, P, Y, order, index) if k > 1 else None
    answer = answered(
        Y,
        tau,
        order.ordered,
        patches=source.patch_shape is not None,
        start=first_rotation(P, start, seed),
        spectra=spectra,
        weights=weights,
        **settings,
    )
    result = answer.result
    held_spectra = spectra if source.n <= LARGEST_ROWS else None  # a part of the rows has other spectra
    Z, R = Y, result.R
    known = source.complete(index) if source.n <= LARGEST_ROWS and spectra is None else None
    if known is not None:  # filled values would tell components apart
        Z, index, weights = Y[known], index[known], None if weights is None else weights[known]
        if whiten:
            Z, R = (Z @ R) / np.maximum((Z @ R).std(axis=0), np.finfo(float).tiny), np.eye(k)
    pieces = pieces_of(source, index) if source.n <= LARGEST_ROWS else ()
    with on_threads(settings.get("threads")):
        spread = errors(
            Rows.of(Z, weights), R, result.tau, ordered=order.ordered, spectra=held_spectra, pieces=pieces
        )
    each = {"independence_negentropy": result.negentropy, "filter_error": spread.filter_error}
    solution = finalise(P, C, result.R) if whiten else finalise(P @ result.R, C, each=each)
    found = facts(answer, solution.order)
    found["unheld_pairs"] = solution.pairs(~spread.identified)
    found["rows_in_time"], found["rows_order"] = order.in_time, order.reason
    if spectra is not None:
        found["bands"] = len(spectra)
    return solution, found


def order_in(source: Source, P: Array, Y: Array) -> RowOrder:
    """Return whether the rows of a source have an order, from its components Y, or its first rows if Y has a part."""
    mine = np.array(own(source.n))
    if source.n > LARGEST_ROWS:
        mine = mine[:ORDER_ROWS]
        Y = np.concatenate(list(source.project(P.astype(np.float32), mine)))
    return agreed(row_order(source, Y, mine))


def spectra_in(source: Source, P: Array, Y: Array, order: RowOrder, index: Array) -> Array | None:
    """Return the spectral matrices of the components Y (n, k) of rows in time, which take the place of their variances.

    index (n,): the numbers of these rows. None for other rows, and where no piece is long enough and nobody asked.
    Raise InputError where somebody did.
    """
    if not order.in_time or not (order.reason == "given" or are_long_enough(source.pieces, source.n)):
        return None
    if source.n <= LARGEST_ROWS:
        return spectra_of(Y, pieces_of(source, index))
    scale = std_of(Y) / np.sqrt(np.einsum("fii->i", S := spectra_of_source(source, P)) / len(S))
    return S * np.outer(scale, scale)  # linear ICA has rows of unit variance


def answered(
    Y: Array,
    tau: float | str = "auto",
    ordered: bool = False,
    *,
    patches: bool = False,
    start: Array | None = None,
    starts: int = STARTS,
    **settings: Any,
) -> Answer:
    """Return the answer at τ, a number or "auto", and the test of its components for dependence.

    "auto" is 1 where the components found there are independent as far as the rows tell, else a cautious 0.05. patches:
    the rows are image patches, whose components are known to be dependent and which have several minima: they start at
    the answer of solver=moments unless a start is given, and "auto" is 0.1. ordered: whether rows depend on their
    neighbours. The others, and the errors, are as for `solve`.
    """
    threads = settings.get("threads")
    if Y.shape[1] == 1:
        starts = 1
    elif patches:
        tau = PATCHES if tau == "auto" else tau
        if start is None:
            start, starts = start_of_patches(Y, threads), 0

    def at(tau: float) -> Answer:
        result = solve(Y, tau, start=start, starts=starts, **settings)
        with on_threads(threads):
            rows = Rows.of(Y, settings.get("weights"))
            return Answer(result, dependence(rows, result.R, ordered=ordered))

    if not isinstance(tau, str):
        return at(tau)
    full = at(LIKELIHOOD)
    return full if full.test.independent else at(CAUTIOUS)


def start_of_patches(Y: Array, threads: int | None) -> Array:
    """Return the answer of solver=moments on part of the rows, (k, k): of the leading components, if they are many."""
    k, leading = Y.shape[1], min(Y.shape[1], LARGEST_TENSOR)
    R = np.eye(k)
    count = min(rows_for(k, NEAR), int(START_WORK / leading**4))
    here = place(Y)
    rows = spaced(Y, count, here) if 2 * count < here[1] else Y
    R[:leading, :leading] = maximise(np.ascontiguousarray(rows[:, :leading]), threads=threads).R
    return R


def facts(answer: Answer, order: Array) -> Facts:
    """Return the facts that a run stores; relative_gradient is the largest angle of the next Newton step, radians.

    order (k,): which column of the answer became which component; it numbers the dependent pairs.
    """
    result = answer.result
    found: Facts = {
        "converged": result.converged,
        "relative_gradient": result.angle,
        "iterations": result.iterations,
        "contrast": result.value,
        "tau": result.tau,
        "minima": result.minima,
        "minima_cosine": result.nearest,
    }
    if len(result.sigma) > 1:
        pairs = np.array(answer.test.pairs(), dtype=np.int64).reshape(-1, 2)
        found["dependent_pairs"] = np.sort(np.argsort(order)[pairs], axis=1)
        found["tested_rows"], found["dependence_spread"] = answer.test.rows, answer.test.is_spread
    return found
