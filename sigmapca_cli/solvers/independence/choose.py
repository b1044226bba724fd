"""τ by the data: 1 where the components of the answer are independent, a cautious .05 where they are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.solvers.independence.dependence import Dependence, dependence
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import STARTS, Independence, solve
from sigmapca_cli.solvers.rows.parallel import threads as on_threads

Array = np.ndarray

LIKELIHOOD = 1.0
"""τ of independent components: C₁ is their likelihood."""
CAUTIOUS = 0.05
"""τ of dependent ones: halves of six real tables agree within .02 of the best of τ = 0, .1 and 1 (docs/findings.md)."""
PATCHES = 0.1
"""τ of image patches, whose components are known to depend on each other."""


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
    """

    result: Independence
    dependence: Dependence
    full: Independence


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

    ordered: whether rows depend on their neighbours. All else, and the errors, are as for `solve`.
    """
    common: dict[str, Any] = {"weights": weights, "spectra": spectra, "threads": threads, **settings}
    full = solve(Y, LIKELIHOOD, start=start, starts=starts, **common)
    with on_threads(threads):
        test = dependence(Rows.of(Y, weights), full.R, ordered=ordered)
    if test.independent:
        return Chosen(full, test, full)
    return Chosen(solve(Y, CAUTIOUS, start=start, starts=starts, **common), test, full)
