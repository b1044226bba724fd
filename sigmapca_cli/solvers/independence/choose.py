"""τ by the data: 1 where the components of the answer are independent, a cautious .1 where they are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.solvers.fourth_moments.maximum import matches
from sigmapca_cli.solvers.independence.dependence import Dependence, dependence
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import STARTS, SUPPORTING, Independence, solve
from sigmapca_cli.solvers.rows.parallel import threads as on_threads
from sigmapca_cli.system.row_shards import sharing

Array = np.ndarray

LIKELIHOOD = 1.0
"""τ of independent components: C₁ is their likelihood."""
CAUTIOUS = 0.1
"""τ of dependent ones: from .03 to .17 the halves of real tables agree as well, or better than at 0 and at 1."""
GAIN = 0.02
"""Dependent components keep τ = 1 if halves of the rows agree better there by more than this, in mean |cos|."""
SPLITS = 4
"""Number of pairs of random halves."""


@dataclass(frozen=True)
class Chosen:
    """The answer at the τ that the rows support.

    Attributes
    ----------
    result : Independence
        The answer at that τ.
    dependence : Dependence
        The test at the answer of τ = 1; components are numbered as there.
    full : Independence
        The answer at τ = 1.
    gain : float
        By how much halves agree better at τ = 1 than at .1, mean |cos|; 0 where they were not compared.
    """

    result: Independence
    dependence: Dependence
    full: Independence
    gain: float = 0.0


def solve_at_chosen_tau(
    Y: Array,
    *,
    weights: Array | None = None,
    spectra: Array | None = None,
    ordered: bool = False,
    start: Array | None = None,
    starts: int = STARTS,
    threads: int | None = None,
    **settings: Any,
) -> Chosen:
    """Solve at τ = 1, test the components for dependence, and solve at the τ that the test supports.

    Parameters
    ----------
    Y : ndarray of shape (n, k)
        As for `solve`.
    weights, spectra, start, starts, threads, **settings
        As for `solve`.
    ordered : bool
        Whether rows depend on their neighbours.

    Returns
    -------
    Chosen
        The answer, the test, and the answer at τ = 1.

    Raises
    ------
    InputError
        If the rows or a setting cannot be used.

    Notes
    -----
    τ = 1 holds for independent components. It also holds for dependent ones whose halves agree better there by more
    than .02, which is asked of rows of one process without an order only; else τ = .1.
    """
    common: dict[str, Any] = {"weights": weights, "spectra": spectra, "threads": threads, **settings}
    full = solve(Y, LIKELIHOOD, start=start, starts=starts, **common)
    with on_threads(threads):
        test = dependence(Rows.of(Y, weights), full.R, ordered=ordered)
    if test.independent:
        return Chosen(full, test, full)
    asked = not ordered and weights is None and spectra is None and sharing() is None
    gain = halves_gain(Y, threads) if asked else 0.0
    if gain > GAIN:
        return Chosen(full, test, full, gain)
    return Chosen(solve(Y, CAUTIOUS, start=start, starts=starts, **common), test, full, gain)


def halves_gain(Y: Array, threads: int | None) -> float:
    """Return how much better the answers of random halves agree at τ = 1 than at .1: the mean over SPLITS pairs."""
    half = min(len(Y) // 2, SUPPORTING[2])
    if half <= 2 * Y.shape[1]:
        return 0.0
    gains = []
    for split in range(SPLITS):
        order = np.random.default_rng((split, 0x4A1F)).permutation(len(Y))
        agree = [
            matches(
                *(
                    solve(Y[part], tau, starts=1, threads=threads).R
                    for part in (order[:half], order[half : 2 * half])
                )
            ).mean()
            for tau in (LIKELIHOOD, CAUTIOUS)
        ]
        gains.append(agree[0] - agree[1])
    return float(np.mean(gains))
