"""Rows that repeat others number by number: a table that was joined or oversampled, and no more samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data import subsample
from sigmapca_cli.system import row_shards

Index = NDArray[np.int64]

LEAST_SHARE = 0.05
"""Share of copies among the rows that is worth a warning."""
FEWEST = 8
"""Different rows from which on a table is one of measurements."""
LOOKED_AT, NEARLY = 16, 0.9
"""So many columns are looked at; one of them has to tell this share of the different rows apart."""
MOST_ENTRIES = 1 << 23
"""Entries of a table up to which its rows are compared; no more rows than one pass keeps."""
MATRICES = ("array", "X")
"""Sources whose rows are as a file or a program has them."""


@dataclass(frozen=True)
class Copies:
    """Which rows of a table are copies of each other.

    of (n,): the number of the different row that each row is. different: how many there are.
    """

    of: Index
    different: int

    def distinct(self, index: Index | None = None) -> tuple[Index, NDArray[np.float64] | None]:
        """Return where each different row comes first among rows `index`, all unless given, and how often it comes.

        The second, (d,), has mean 1; None if each comes as often.
        """
        of = self.of if index is None else self.of[index]
        _, first, count = np.unique(of, return_index=True, return_counts=True)
        order = np.argsort(first)
        weights = None if np.ptp(count) == 0 else count[order] / count.mean()
        return first[order].astype(np.int64), weights

    def shared(self, some: slice, others: slice) -> int:
        """Return how many of some rows are copies of others."""
        return int(np.isin(self.of[some], self.of[others]).sum())

    def outside(self, some: slice) -> int:
        """Return how many of some rows are copies of rows that are not among them."""
        mine = np.zeros(len(self.of), bool)
        mine[some] = True
        return int(np.isin(self.of[mine], self.of[~mine]).sum())

    @property
    def words(self) -> str:
        """How many rows are copies."""
        return f"{len(self.of) - self.different} of {len(self.of)} rows are copies of others"


def copies_of(source: Any) -> Copies | None:
    """Return which rows of a source are copies of each other, None if few or none are, or they are too many to ask."""
    if source.name not in MATRICES or not source.has_rows or source.sparse or source.p < 2:
        return None
    if (
        source.n > subsample.MOST_ROWS
        or source.n * source.p > MOST_ENTRIES
        or row_shards.sharing() is not None
    ):
        return None
    return copies_in(source.take(np.arange(source.n), raw=True))


def copies_in(matrix: NDArray[Any]) -> Copies | None:
    """Return which rows of a matrix (n, p) are copies of each other; None if few or none are.

    Answers and counts repeat without being copied. So a column has to have nearly as many different numbers as there
    are different rows.
    """
    x, n, most = np.ascontiguousarray(matrix), len(matrix), 0
    for column in x.T[:LOOKED_AT]:
        most = max(most, len(np.unique(column)))
        if most > (1 - LEAST_SHARE) * n:
            return None
    rows = x.view([("", x.dtype)] * x.shape[1])[:, 0]
    different, of = np.unique(rows, return_inverse=True)
    few = len(different)
    if few < FEWEST or few > (1 - LEAST_SHARE) * n or most < NEARLY * few:
        return None
    return Copies(of.astype(np.int64), few)


def copies_in_words(source: Any) -> str | None:
    """Return a sentence if many rows are copies of others, else None."""
    if (copies := source.copies) is None:
        return None
    return (
        f"{copies.words}: the certificate, its errors and the test of independence count the {copies.different} "
        "different ones; halves and parts that share some are no two samples. Keep each row once"
    )
