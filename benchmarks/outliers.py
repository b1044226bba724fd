"""Bad rows against the answer: planted Laplace sources, p = 64, k = 12, groups of 3, n = 20,000; MCC with the truth.

    python benchmarks/outliers.py

Bad rows are random, of so many standard deviations. Clipped: the norms of rows are drawn in to their 0.999 quantile
(`solver.clip`), covariance included; 0.98 for 200 rows and more. Last: what clipping changes on clean image patches
(data=natural): mean matched |cos| of the filters with and without, and the seconds of both.
"""

from __future__ import annotations

import time

import numpy as np

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.solvers.fourth_moments.fit import moments_fit
from sigmapca_cli.solvers.main_loss.fit import newton_fit

CASES = ((0, 1.0), (1, 100.0), (1, 1e4), (20, 20.0), (200, 5.0), (1000, 3.0), (1000, 20.0))


def spoiled(rows: int, size: float) -> tuple[Source, np.ndarray]:
    """The data with bad rows, and the true filters."""
    source = data.build(DataConfig(name="planted", n=20_000, standardise="none"))
    assert isinstance(source, MemorySource) and source.truth is not None
    X, rng = np.array(source.X, np.float64), np.random.default_rng(1)
    bad = rng.choice(len(X), rows, replace=False)
    X[bad] = size * X.std(0).mean() * rng.normal(size=(rows, X.shape[1]))
    return MemorySource("spoiled", X, Standardisation("none")), np.asarray(source.truth.filters)


def main() -> None:
    """One line a case."""
    print("bad rows, size | PCA | moments | Newton a = 4 from moments | moments, clipped | Newton, clipped")
    for rows, size in CASES:
        source, truth = spoiled(rows, size)
        clip = 0.999 if rows < 200 else 1 - 1.1 * rows / 20_000
        found = [source.principal_axes()[1][:, :12]]
        for quantile in (None, clip):
            first = moments_fit(source, 12, clip=quantile)[0].W
            found += [first, newton_fit(source, 12, 4.0, start=first, clip=quantile)[0].W]
        cells = " | ".join(f"{agreement(W, truth).mean:.4f}" for W in found)
        print(f"{rows}, × {size:g} | {cells}", flush=True)
    source = data.build(DataConfig(name="natural"))
    source.principal_axes()
    plain = None
    for quantile in (None, 0.999, 0.99):
        start = time.perf_counter()
        W = moments_fit(source, 32, clip=quantile)[0].W
        seconds = time.perf_counter() - start
        plain = W if plain is None else plain
        print(f"natural, clip {quantile}: {agreement(W, plain).mean:.4f}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
