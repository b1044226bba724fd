"""Convergence of the Newton solver on planted sources and on natural image patches.

    python benchmarks/newton.py [planted|sample|cifar10] [a ...]

planted: mean |cos| to the truth, from PCA and from random starts. sample: scikit-learn's two sample images
cut into 32 × 32 tiles; cifar10: the first 500 training images (folder in SIGMAPCA_DATA, default data/). Times
are CPU seconds of one thread.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.solvers.newton.solve import NewtonResult, solve
from sigmapca_cli.solvers.rows.projection import project

PLANTED = [
    (64, 12, 3, "laplace", 2.0),
    (64, 12, 3, "laplace", 4.0),
    (64, 12, 3, "laplace", 8.0),
    (64, 12, 3, "uniform", 0.8),
    (64, 12, 3, "mixed", "auto"),
    (128, 32, 8, "laplace", 2.0),
    (128, 32, 8, "mixed", "auto"),
    (363, 64, 8, "laplace", 4.0),
    (128, 64, 8, "uniform", 0.8),
    (128, 64, 8, "mixed", "auto"),
    (128, 64, 6, "mixed", "auto"),
    (256, 128, 16, "laplace", 4.0),
]
STARTS = 20
IMAGES_A = (2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 14.0)


def matched(A: np.ndarray, B: np.ndarray) -> float:
    cosine = np.abs(A.T @ B)
    return float(cosine[linear_sum_assignment(-cosine)].mean())


def timed(Y: np.ndarray, **options: object) -> tuple[NewtonResult, float]:
    start = time.process_time()
    result = solve(Y, threads=1, **options)  # type: ignore[arg-type]
    return result, time.process_time() - start


def planted() -> None:
    print("p k group sources a | iterations residual mcc seconds | random starts: same, iterations")
    for p, k, group, kind, a in PLANTED:
        cfg = DataConfig(name="planted", p=p, k=k, group=group, sources=kind, n=100_000, standardise="none")
        source = data.build(cfg)
        P, Y, _, _ = project(source, k)
        result, seconds = timed(Y, a=a, tol=1e-6)
        assert source.truth is not None and source.truth.filters is not None
        mcc = matched(P @ result.R, source.truth.filters)
        same, counts = 0, []
        for seed in range(STARTS):
            R = np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]
            again, _ = timed(Y, a=a, tol=1e-6, start=R)
            same += again.converged and matched(again.R, result.R) > 0.999
            counts.append(again.iterations)
        print(
            f"{p} {k} {group} {kind} {a} | {result.iterations} {result.residual:.0e} {mcc:.5f} {seconds:.2f} |"
            f" {same}/{len(counts)}, {min(counts, default=0)}-{max(counts, default=0)}",
            flush=True,
        )


def sample_tiles() -> str:
    """The two images as PNG tiles, in a scratch folder."""
    import tempfile
    from pathlib import Path

    from PIL import Image
    from sklearn.datasets import load_sample_image

    folder = Path(tempfile.mkdtemp(prefix="sigmapca-tiles-"))
    for name in ("china.jpg", "flower.jpg"):
        image = load_sample_image(name)
        for row in range(image.shape[0] // 32):
            for column in range(image.shape[1] // 32):
                tile = image[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]
                Image.fromarray(tile).save(folder / f"{name[:-4]}_{row:02d}_{column:02d}.png")
    return str(folder)


def patches(kind: str, scales: tuple[float, ...]) -> None:
    start = time.process_time()
    if kind == "cifar10":
        path = os.environ.get("SIGMAPCA_DATA", "data")
        source = data.build(DataConfig(name="cifar10", path=path, images=500, epsilon=1e-3))
    else:
        source = data.build(DataConfig(name="images", path=sample_tiles(), epsilon=1e-3))
    _, Y, _, _ = project(source, 32)
    print(f"{kind}: {Y.shape[0]} rows, k = 32; covariance and projection {time.process_time() - start:.1f} s")
    print("a | converged iterations residual relative seconds")
    for a in scales:
        result, seconds = timed(Y, a=a)
        print(
            f"{a:g} | {result.converged} {result.iterations} {result.residual:.0e}"
            f" {result.relative_residual:.0e} {seconds:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "planted"
    if what == "planted":
        planted()
    else:
        patches(what, tuple(map(float, sys.argv[2:])) or IMAGES_A)
