"""The memory that a run will take at least, worked out before it begins."""

from __future__ import annotations

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.limits import memory_left
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.eigenpairs import MOST_BLOCKS, SPARE
from sigmapca_cli.sources.implicit import WIDE
from sigmapca_cli.sources.second_moments import GRAM_ROWS

FLOAT = 8
"""Bytes of a number in float64."""


def bytes_needed(cfg: Config, source: Source) -> float:
    """Return the bytes that the largest arrays of a run take together, besides its data.

    The second moments: three matrices (p, p), or of many features the vectors of `sources.eigenpairs`. The solution:
    filters, encoder, decoder and their copies. The rows: projected on k directions for the solvers, or the state and
    the groups of the convergence measure for training.
    """
    from sigmapca_cli.solvers.projected import LARGEST_ROWS  # most runs need no solver

    n, p, k = source.n, source.p, int(cfg.k)
    if p <= WIDE:
        moments = 3 * p * p
    elif n <= GRAM_ROWS:
        moments = 2 * n * n + 3 * p * (k + SPARE)
    else:
        moments = (2 * MOST_BLOCKS + 2) * p * (k + SPARE)
    solution = 5 * p * k
    if cfg.model.kind == "direct":
        rows = 3 * n * k if cfg.model.name in ("fastica", "picard") else 0
    elif cfg.solver.name != "stochastic":
        rows = 2 * min(n, LARGEST_ROWS) * k
    else:
        rows = 40 * p * k + n
    return float(FLOAT) * (moments + solution + rows)


def check_memory(cfg: Config, source: Source) -> None:
    """Raise InputError for a run that needs more memory than this process may take."""
    needed, left = bytes_needed(cfg, source), memory_left()
    if needed > left:
        raise InputError(
            f"k={cfg.k} of {source.n} rows × {source.p} features needs about {needed / 1e9:.1f} GB of memory, and "
            f"{max(left, 0) / 1e9:.1f} GB are left to this process: lower k, or ask for more memory (--mem with SLURM)"
        )
