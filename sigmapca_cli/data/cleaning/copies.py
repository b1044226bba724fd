"""Rows that repeat others number by number: a table that was joined or oversampled, and no more samples."""

from typing import Any

import numpy as np

from sigmapca_cli.data.on_disk import row_sample

LEAST_SHARE = 0.05
"""Share of copies among the rows that is worth a warning."""
FEWEST = 8
"""Different rows from which on a table is one of measurements."""
LOOKED_AT, NEARLY = 16, 0.9
"""So many columns are looked at; one of them has to tell this share of the different rows apart."""
MOST_ENTRIES = 1 << 23
"""Entries of a table up to which its rows are compared; no more rows than one pass keeps."""


def copies_in_words(source: Any) -> str | None:
    """Return a sentence if many rows are copies of others, else None.

    Answers and counts repeat without being copied. So a column has to have nearly as many different numbers as there
    are different rows.
    """
    if source.name != "array" or not source.has_rows or source.p < 2:
        return None
    if source.n > row_sample.MOST_ROWS or source.n * source.p > MOST_ENTRIES:
        return None
    x = np.ascontiguousarray(source.take(np.arange(source.n), raw=True))
    most = 0
    for column in x.T[:LOOKED_AT]:
        most = max(most, len(np.unique(column)))
        if most > (1 - LEAST_SHARE) * source.n:
            return None
    different = len(np.unique(x.view([("", x.dtype)] * x.shape[1])))
    if different < FEWEST or different > (1 - LEAST_SHARE) * source.n or most < NEARLY * different:
        return None
    return (
        f"{source.n - different} of {source.n} rows are copies of others: halves, standard errors and tests of "
        "independence take each for a sample of its own, and promise too much; keep each row once"
    )
