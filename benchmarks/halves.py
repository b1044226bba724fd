"""Do disjoint halves of the images give the same filters, and if not, is it the data or the route of the solver?

    python benchmarks/halves.py [natural|cifar10|planted] [k ...] [a=2,4,inf] [starts=7] [store=yes]

Mean matched |cos| between the filters from even and from odd images; cifar10: the first 500 training images (folder in
SIGMAPCA_DATA, default data/). `span`: mean cosine of the principal angles between the two PCA subspaces, which no
method inside them can exceed by much. The Newton solver starts at PCA, at its own answer for a = 10, at that of
solver=moments, and (odd half only) at the answer of the even half, taken into the subspace of the odd one. A cross: not
converged. Seconds are those of both halves, beyond reading and projecting. starts=N adds the solution of largest J from
N starts, with the number of different solutions in the even and the odd half, and how far they are apart. planted: rows
with known directions, four groups of equal variance in 2k features. store: put the numbers into
docs/results/halves.json, from which the pages are made (`sigmapca reproduce --write-docs`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stored import keep

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.solvers.fourth_moments.maximum import Maximum, maximise
from sigmapca_cli.solvers.main_loss.several import solve_from
from sigmapca_cli.solvers.newton.solve import NewtonResult, solve
from sigmapca_cli.solvers.rows.projection import nearest_rotation, project

SCALES = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, np.inf)
LAMS = (0.03, 0.1, 1 / 3, 1.0)
ANCHOR = 10.0

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)
Answer = NewtonResult | Maximum
Row = dict[str, Any]


def given(name: str, k: int) -> dict[str, Any]:
    """Keys of the data group."""
    if name == "cifar10":
        return {"path": os.environ.get("SIGMAPCA_DATA", "data"), "images": 500}
    return {"k": k, "group": k // 4, "p": 2 * k} if name == "planted" else {}


def load(name: str, k: int) -> list[Half]:
    """Leading eigenvectors and components of the even and of the odd images."""
    found = []
    for half in ("even", "odd"):
        P, Y, _, _ = project(data.build(DataConfig(name=name, half=half, **given(name, k))), k)
        found.append((P, Y))
    return found


def same(halves: list[Half], answers: Sequence[Answer], seconds: float | None = None) -> Row:
    """Agreement of two answers, with their iterations."""
    W, V = (P @ answer.R for (P, _), answer in zip(halves, answers, strict=True))
    found: Row = {"agreement": round(agreement(W, V).mean, 4)}
    found["converged"] = all(answer.converged for answer in answers)
    found["iterations"] = [answer.iterations for answer in answers]
    return found if seconds is None else {**found, "seconds": round(seconds, 1)}


def text(row: Row) -> str:
    """Return a row as it is printed."""
    said = ", ".join(str(count) for count in row["iterations"])
    took = f"; {row['seconds']} s" if "seconds" in row else ""
    apart = ", ".join(f"{value:.3f}" for value in row.get("apart", []))
    more = f"; {row['solutions']} solutions, {apart}" if apart else ""
    return f"{row['agreement']:.4f}{'' if row['converged'] else '×'} ({said}{took}){more}"


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
    from sigmapca_cli.storage.read import StoredRun

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
            filters.append(np.asarray(StoredRun.open(Path(place, half)).filters))
    return agreement(*filters).mean


def table(name: str, k: int, scales: tuple[float, ...], starts: int) -> dict[str, Any]:
    """Print and return the rows of one k."""
    halves = load(name, k)
    (P, _), (Q, _) = halves
    span = np.linalg.svd(P.T @ Q, compute_uv=False)
    found: dict[str, Any] = {
        "linear PCA": agreement(P, Q).mean,
        "linear ICA": agreement(*(lica(half) for half in halves)).mean,
        "FastICA": agreement(*(fastica(half) for half in halves)).mean,
        "picard": agreement(*(picard(half) for half in halves)).mean,
        "stochastic": trained(name, k),
        "span": float(span.mean()),
        "least cosine": float(span[-1]),
    }
    found = {method: round(value, 4) for method, value in found.items()}
    print(
        f"{name}, k = {k}: " + ", ".join(f"{method} {value:.4f}" for method, value in found.items()),
        flush=True,
    )
    top: list[Maximum] = []
    found["moments"] = {}
    for lam in LAMS:
        start = time.perf_counter()
        climbed = [maximise(Y, lam) for _, Y in halves]
        found["moments"][f"{lam:.3g}"] = row = same(halves, climbed, time.perf_counter() - start)
        print(f"moments, lam = {lam:.3g}: {text(row)}", flush=True)
        top = climbed if lam == 0.1 else top
    anchors = [solve(Y, a=ANCHOR) for _, Y in halves] if scales else []
    print(
        "a | "
        + " | ".join(("from PCA", "from a = 10", "from moments", "odd half from the even one's", "of starts"))
    )
    found["newton"] = {}
    for a in scales:
        found["newton"][f"{a:g}"] = rows = newton(halves, a, anchors, top, starts)
        print(f"{a:g} | " + " | ".join(text(row) for row in rows.values()), flush=True)
    return found


def newton(
    halves: list[Half], a: float, anchors: Sequence[Answer], top: Sequence[Answer], starts: int
) -> dict[str, Row]:
    """Agreement of the solutions at one a, from every start."""
    (P, _), (Q, Z) = halves
    start = time.perf_counter()
    own = [solve(Y, a=a) for _, Y in halves]
    rows = {"PCA": same(halves, own, time.perf_counter() - start)}
    for name, firsts in (("a = 10", anchors), ("moments", top)):
        rows[name] = same(
            halves, [solve(Y, a=a, start=first.R) for (_, Y), first in zip(halves, firsts, strict=True)]
        )
    moved = solve(Z, a=a, start=nearest_rotation(Q, P @ own[0].R))
    rows["other half"] = same(halves, [own[0], moved])
    if starts > 1:
        found: list[Any] = [solve_from(Y, starts, a=a) for _, Y in halves]
        rows["starts"] = {
            **same(halves, [one.result for one in found]),
            "solutions": [one.solutions for one in found],
            "apart": [round(one.farthest, 3) for one in found],
        }
    return rows


def main() -> None:
    """Every k named, or 32."""
    words = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    scales = tuple(float(text) for text in words["a"].split(",") if text) if "a" in words else SCALES
    name, *sizes = [word for word in sys.argv[1:] if "=" not in word] or ["natural"]
    for k in [int(size) for size in sizes] or [32]:
        found = table(name, k, scales, int(words.get("starts", 1)))
        if "store" in words:
            keep("halves", **{f"{name} {k}": found})


if __name__ == "__main__":
    main()
