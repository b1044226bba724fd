"""solver=moments on planted sources: the answer, and whether random starts end in it.

    python benchmarks/moments.py

n = 100,000, noise 0.05, std 3·0.7^(i//group), λ = 0.1, as `benchmarks/newton.py planted` for the Newton solver.
`error`: the largest standard error of a filter, radians, as stated by the solver. Times are CPU seconds of one thread.
"""

from __future__ import annotations

import time

import numpy as np
from newton import PLANTED, matched

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.solvers.fourth_moments.maximum import Maximum, maximise
from sigmapca_cli.solvers.rows.projection import project

STARTS, FEWER, MANY = 20, 5, 48


def timed(Y: np.ndarray, **options: object) -> tuple[Maximum, float]:
    """The answer and its CPU seconds."""
    start = time.process_time()
    result = maximise(Y, threads=1, **options)  # type: ignore[arg-type]
    return result, time.process_time() - start


def main() -> None:
    """One line a data set."""
    print("p k group sources | converged steps angle mcc error seconds | random starts: same, steps")
    for p, k, group, kind in dict.fromkeys(case[:4] for case in PLANTED):
        cfg = DataConfig(name="planted", p=p, k=k, group=group, sources=kind, n=100_000, standardise="none")
        source = data.build(cfg)
        P, Y, _, _ = project(source, k)
        result, seconds = timed(Y)
        assert source.truth is not None and source.truth.filters is not None
        mcc = matched(P @ result.R, source.truth.filters)
        same, counts = 0, []
        for seed in range(FEWER if k > MANY else STARTS):
            R = np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]
            again, _ = timed(Y, start=R)
            same += again.converged and matched(again.R, result.R) > 0.999
            counts.append(again.iterations)
        print(
            f"{p} {k} {group} {kind} | {result.converged} {result.iterations} {result.angle:.0e} {mcc:.5f}"
            f" {result.filter_error.max():.3f} {seconds:.2f} | {same}/{len(counts)}, {min(counts)}-{max(counts)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
