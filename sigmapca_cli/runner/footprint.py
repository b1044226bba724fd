"""The memory that a run will take at least, worked out before it begins."""

from __future__ import annotations

from sigmapca_cli.data.config import Forecast
from sigmapca_cli.data.moments.covariance import GRAM_ROWS
from sigmapca_cli.data.moments.eigenpairs import CHECKS, MOST_BLOCKS, SPARE, spare_of
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.subsample import MOST_BYTES
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import Way, way_of
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.limits import memory_left

FLOAT = 8
"""Bytes of a number in float64."""
HEAVY_BATCH = 1 << 28
"""Bytes of a batch in float32 beyond which a step is slow."""
BASE = float(MOST_BYTES + (128 << 20))
"""Bytes of a process and its libraries, and of the rows that a pass over a file keeps."""


def bytes_needed(cfg: Config, n: int, p: int, sparse: bool = False) -> float:
    """Return the bytes that the largest arrays of a run on n rows of p features take together, besides its data.

    The second moments: three matrices (p, p), or of many features the vectors of `eigenpairs`. The solution:
    filters, encoder, decoder and their copies. The rows: projected on k directions for the solvers, or the state and
    the groups of the convergence measure for training.
    """
    from sigmapca_cli.solvers.rows.projection import LARGEST_ROWS  # most runs need no solver

    k = int(cfg.k)
    if p <= WIDE:
        moments = 3 * p * p
    elif n <= GRAM_ROWS:
        moments = 2 * n * n + 3 * p * (k + spare_of(p))
    elif sparse:  # the vectors of ARPACK, the axes and their products, the blocks of the check
        moments = p * (2 * (k + 3) + 3 * (k + spare_of(p)) + 2 * CHECKS * (1 + spare_of(p)))
    else:
        moments = (2 * MOST_BLOCKS + 2) * p * (k + SPARE)
    solution = 5 * p * k
    way = way_of(cfg)
    if way is Way.DIRECT:
        rows = 3 * n * k if cfg.model.name in ("fastica", "picard") else 0
    elif way.is_solver:
        rows = 2 * min(n, LARGEST_ROWS) * k
    else:
        rows = 40 * p * k + n // 2
    return float(FLOAT) * (moments + solution + rows)


def forecast_of(cfg: Config) -> Forecast:
    """Return a function (n, p) to words for the memory of a run; it raises InputError if there is too little."""

    def plan(n: int, p: int) -> str:
        if not isinstance(cfg.k, int) or cfg.k > min(n, p):
            return ""  # refused elsewhere, or not known yet
        check_memory(cfg, n, p)
        return f"; the run takes about {(BASE + bytes_needed(cfg, n, p)) / 1e9:.1f} GB of memory"

    return plan


def check_memory(cfg: Config, n: int, p: int, sparse: bool = False) -> None:
    """Raise InputError for a run on n rows of p features that needs more memory than this process may take."""
    needed, left = bytes_needed(cfg, n, p, sparse), memory_left()
    if needed > left:
        raise InputError(
            f"k={cfg.k} of {n} rows × {p} features needs about {needed / 1e9:.1f} GB of memory, and "
            f"{max(left, 0) / 1e9:.1f} GB are left to this process: lower k, or ask for more memory (--mem with SLURM)"
        )


def heavy_steps(cfg: Config, n: int, p: int) -> str | None:
    """Return a sentence for training whose batches are so wide that steps take long; None for others."""
    rows = min(int(cfg.batch_size), n)
    if way_of(cfg) is not Way.STEPS or 4 * rows * p < HEAVY_BATCH:
        return None
    return (
        f"each step takes {rows} rows of {p} features, {4e-9 * rows * p:.1f} GB, so steps are slow: "
        "choose a smaller batch_size, or solver=moments (a few passes over the rows)"
    )
