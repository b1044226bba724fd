"""Do disjoint halves of the images give the same filters, and if not, is it the data or the route of the solver?

    python benchmarks/halves.py [natural|cifar10|planted] [k ...] [a=2,4,inf] [starts=7]

Mean matched |cos| between the filters from even and from odd images; cifar10: the first 500 training images (folder in
SIGMAPCA_DATA, default data/). `span`: mean cosine of the principal angles between the two PCA subspaces, which no
method inside them can exceed by much. The Newton solver starts at PCA, at its own answer for a = 10, at that of
solver=moments, and (odd half only) at the answer of the even half, taken into the subspace of the odd one. A cross: not
converged. Seconds are those of both halves, beyond reading and projecting. starts=N adds the solution of largest J from
N starts, with the number of different solutions in the even and the odd half, and how far they are apart. planted: rows
with known directions (k must be a multiple of 4), and the default `data=planted` has 64 features.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli import sources
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.solvers.maximum import Maximum, maximise
from sigmapca_cli.solvers.newton import NewtonResult, solve
from sigmapca_cli.solvers.projected import nearest_rotation, project
from sigmapca_cli.solvers.several import solve_from
from sigmapca_cli.sources.config import DataConfig

SCALES = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, np.inf)
LAMS = (0.03, 0.1, 1 / 3, 1.0)
ANCHOR = 10.0

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)
Answer = NewtonResult | Maximum


def given(name: str, k: int) -> dict[str, Any]:
    """Keys of the data group."""
    if name == "cifar10":
        return {"path": os.environ.get("SIGMAPCA_DATA", "data"), "images": 500}
    return {"k": k, "group": k // 4, "p": 2 * k} if name == "planted" else {}


def load(name: str, k: int) -> list[Half]:
    """Leading eigenvectors and components of the even and of the odd images."""
    found = []
    for half in ("even", "odd"):
        P, Y, _, _ = project(sources.build(DataConfig(name=name, half=half, **given(name, k))), k)
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


def picard(half: Half) -> Array:
    """Encoder of picard (tanh, extended to both signs), at its own tolerance."""
    from picard import picard as fit

    P, Y = half
    sigma = Y.std(0, dtype=np.float64)
    _, V, _ = fit((Y / sigma).T, whiten=False, extended=True, ortho=True, random_state=0, max_iter=500)
    return P / sigma @ V.T


def trained(name: str, k: int) -> float:
    """Agreement of the halves by the default stochastic training, seed 0 for both."""
    from sigmapca_cli.runs.read import Run

    with tempfile.TemporaryDirectory() as place:
        filters = []
        for half in ("even", "odd"):
            words = [f"data={name}", f"data.half={half}", f"k={k}", "--run-dir", f"{place}/{half}"]
            words += [f"data.{key}={value}" for key, value in given(name, k).items()]
            done = subprocess.run(
                [sys.executable, "-m", "sigmapca_cli", "train", *words], capture_output=True
            )
            if done.returncode:
                raise SystemExit(done.stderr.decode())
            filters.append(Run.open(Path(place, half)).filters)
    return agreement(*filters).mean


def table(name: str, k: int, scales: tuple[float, ...], starts: int) -> None:
    """Print the rows of one k."""
    halves = load(name, k)
    (P, _), (Q, Z) = halves
    span = np.linalg.svd(P.T @ Q, compute_uv=False)
    ica = agreement(*(lica(half) for half in halves)).mean
    peer = agreement(*(fastica(half) for half in halves)).mean
    other = agreement(*(picard(half) for half in halves)).mean
    print(
        f"{name}, k = {k}: linear PCA {agreement(P, Q).mean:.3f}, linear ICA {ica:.3f}, FastICA {peer:.3f}, "
        f"picard {other:.3f}; stochastic training, a = 4, {trained(name, k):.3f}; span {span.mean():.4f} (least cosine "
        f"{span[-1]:.2f})",
        flush=True,
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
            f"{same(halves, [own[0], moved])}{several(halves, a, starts)}",
            flush=True,
        )


def several(halves: list[Half], a: float, starts: int) -> str:
    """Agreement of the solutions of largest J, the number of solutions, and the least mean |cos| between them."""
    if starts < 2:
        return ""
    found = [solve_from(Y, starts, a=a) for _, Y in halves]
    counts = ", ".join(str(one.solutions) for one in found)
    apart = ", ".join(f"{one.farthest:.3f}" for one in found)
    return f" | {same(halves, [one.result for one in found])}; {counts} solutions; {apart}"


def main() -> None:
    """Every k named, or 32."""
    words = sys.argv[1:]
    named = [word[2:] for word in words if word.startswith("a=")]
    scales = tuple(float(text) for word in named for text in word.split(",") if text) if named else SCALES
    starts = next((int(word[7:]) for word in words if word.startswith("starts=")), 1)
    plain = [word for word in words if not word.startswith(("a=", "starts="))]
    for k in [int(text) for text in plain[1:]] or [32]:
        table(plain[0] if plain else "natural", k, scales, starts)


if __name__ == "__main__":
    main()
