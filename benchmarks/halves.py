"""Do disjoint halves of the images give the same filters, and if not, is it the data or the route of the solver?

    python benchmarks/halves.py [natural|cifar10] [k ...] [a=2,4,inf]

Mean matched |cos| between the filters from even and from odd images; cifar10: the first 500 training images (folder in
SIGMAPCA_DATA, default data/). `span`: mean cosine of the principal angles between the two PCA subspaces, which no
method inside them can exceed by much. The Newton solver starts at PCA, at its own answer for a = 10, at that of
solver=moments, and (odd half only) at the answer of the even half, taken into the subspace of the odd one. A cross: not
converged. Seconds are those of both halves, beyond reading and projecting.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from sigmapca_cli import sources
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.solvers.maximum import Maximum, maximise
from sigmapca_cli.solvers.newton import NewtonResult, solve
from sigmapca_cli.solvers.projected import nearest_rotation, project
from sigmapca_cli.sources.config import DataConfig

SCALES = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, np.inf)
LAMS = (0.03, 0.1, 1 / 3, 1.0)
ANCHOR = 10.0

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)
Answer = NewtonResult | Maximum


def load(name: str, k: int) -> list[Half]:
    """Leading eigenvectors and components of the even and of the odd images."""
    given = {"path": os.environ.get("SIGMAPCA_DATA", "data"), "images": 500} if name == "cifar10" else {}
    found = []
    for half in ("even", "odd"):
        P, Y, _, _ = project(sources.build(DataConfig(name=name, half=half, **given)), k)
        found.append((P, Y))
    return found


def same(halves: list[Half], answers: list[Answer], seconds: float | None = None) -> str:
    """Agreement of two answers, with their iterations."""
    W, V = (P @ answer.R for (P, _), answer in zip(halves, answers, strict=True))
    mark = "" if all(answer.converged for answer in answers) else "×"
    said = ", ".join(str(answer.iterations) for answer in answers)
    took = "" if seconds is None else f"; {seconds:.1f} s"
    return f"{agreement(W, V).mean:.4f}{mark} ({said}{took})"


def lica(half: Half) -> Array:
    """Encoder of linear ICA, as `model=lica solver=newton` finds it."""
    P, Y = half
    sigma = Y.std(0, dtype=np.float64)
    return P / sigma @ solve((Y / sigma).astype(Y.dtype), nonlinearity="logcosh").R


def fastica(half: Half) -> Array:
    """Encoder of scikit-learn's FastICA, at its own tolerance."""
    import warnings

    from sklearn.decomposition import FastICA

    P, Y = half
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FastICA(Y.shape[1], whiten="unit-variance", random_state=0).fit(Y)
    return P @ model.components_.T


def table(name: str, k: int, scales: tuple[float, ...]) -> None:
    """Print the rows of one k."""
    halves = load(name, k)
    (P, _), (Q, Z) = halves
    span = np.linalg.svd(P.T @ Q, compute_uv=False)
    ica = agreement(*(lica(half) for half in halves)).mean
    peer = agreement(*(fastica(half) for half in halves)).mean
    print(
        f"{name}, k = {k}: linear PCA {agreement(P, Q).mean:.3f}, linear ICA {ica:.3f}, FastICA {peer:.3f}; span "
        f"{span.mean():.4f} (least cosine {span[-1]:.2f})"
    )
    top: list[Maximum] = []
    for lam in LAMS:
        start = time.perf_counter()
        found = [maximise(Y, lam) for _, Y in halves]
        print(f"moments, lam = {lam:.3g}: {same(halves, found, time.perf_counter() - start)}", flush=True)
        top = found if lam == 0.1 else top
    if not scales:
        return
    anchors = [solve(Y, a=ANCHOR) for _, Y in halves]
    print(f"a = 10 from PCA: {same(halves, anchors)}")
    print(
        "a | from PCA (iterations; seconds) | from a = 10 | from moments, lam = 0.1 | odd half from the even one's"
    )
    for a in scales:
        start = time.perf_counter()
        own = [solve(Y, a=a) for _, Y in halves]
        seconds = time.perf_counter() - start
        later = [solve(Y, a=a, start=first.R) for (_, Y), first in zip(halves, anchors, strict=True)]
        climbed = [solve(Y, a=a, start=first.R) for (_, Y), first in zip(halves, top, strict=True)]
        moved = solve(Z, a=a, start=nearest_rotation(Q, P @ own[0].R))
        print(
            f"{a:g} | {same(halves, own, seconds)} | {same(halves, later)} | {same(halves, climbed)} | "
            f"{same(halves, [own[0], moved])}",
            flush=True,
        )


def main() -> None:
    """Every k named, or 32."""
    words = sys.argv[1:]
    named = [word[2:] for word in words if word.startswith("a=")]
    scales = tuple(float(text) for word in named for text in word.split(",") if text) if named else SCALES
    plain = [word for word in words if not word.startswith("a=")]
    for k in [int(text) for text in plain[1:]] or [32]:
        table(plain[0] if plain else "natural", k, scales)


if __name__ == "__main__":
    main()
