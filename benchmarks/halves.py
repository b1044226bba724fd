"""Do disjoint halves of the images give the same filters, and if not, is it the data or the route of the solver?

    python benchmarks/halves.py [natural|cifar10] [k ...]

Mean matched |cos| between the filters from even and from odd images; cifar10: the first 500 training images (folder in
SIGMAPCA_DATA, default data/). `span`: mean cosine of the principal angles between the two PCA subspaces, which no
method inside them can exceed by much. The Newton solver starts at PCA, at its own answer for a = 10, and (odd half
only) at the answer of the even half, taken into the subspace of the odd one. A cross: not converged.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from sigmapca_cli import sources
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.solvers.newton import NewtonResult, solve
from sigmapca_cli.solvers.run import nearest_rotation, project
from sigmapca_cli.sources.config import DataConfig

SCALES = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
ANCHOR = 10.0

Array = np.ndarray
Half = tuple[Array, Array]  # P (p, k), Y (n, k)


def load(name: str, k: int) -> list[Half]:
    """Leading eigenvectors and components of the even and of the odd images."""
    given = {"path": os.environ.get("SIGMAPCA_DATA", "data"), "images": 500} if name == "cifar10" else {}
    found = []
    for half in ("even", "odd"):
        P, Y, _, _ = project(sources.build(DataConfig(name=name, half=half, **given)), k)
        found.append((P, Y))
    return found


def same(halves: list[Half], answers: list[NewtonResult]) -> str:
    """Agreement of two answers, with their iterations."""
    W, V = (P @ answer.R for (P, _), answer in zip(halves, answers, strict=True))
    mark = "" if all(answer.converged for answer in answers) else "×"
    return f"{agreement(W, V).mean:.3f}{mark} ({', '.join(str(answer.iterations) for answer in answers)})"


def lica(half: Half) -> Array:
    """Encoder of linear ICA, as `model=lica solver=newton` finds it."""
    P, Y = half
    sigma = Y.std(0, dtype=np.float64)
    return P / sigma @ solve((Y / sigma).astype(Y.dtype), nonlinearity="logcosh").R


def table(name: str, k: int) -> None:
    """Print the rows of one k."""
    halves = load(name, k)
    (P, _), (Q, Z) = halves
    span = np.linalg.svd(P.T @ Q, compute_uv=False)
    ica = agreement(*(lica(half) for half in halves)).mean
    print(
        f"{name}, k = {k}: linear PCA {agreement(P, Q).mean:.3f}, linear ICA {ica:.3f}; span {span.mean():.3f}"
        f" (least cosine {span[-1]:.2f})"
    )
    anchors = [solve(Y, a=ANCHOR) for _, Y in halves]
    print(f"a = 10 from PCA: {same(halves, anchors)}")
    print("a | from PCA (iterations) | from a = 10 | odd half from the even half's answer")
    for a in SCALES:
        own = [solve(Y, a=a) for _, Y in halves]
        later = [solve(Y, a=a, start=first.R) for (_, Y), first in zip(halves, anchors, strict=True)]
        moved = solve(Z, a=a, start=nearest_rotation(Q, P @ own[0].R))
        print(
            f"{a:g} | {same(halves, own)} | {same(halves, later)} | {same(halves, [own[0], moved])}",
            flush=True,
        )


def main() -> None:
    """Every k named, or 32."""
    name = sys.argv[1] if len(sys.argv) > 1 else "natural"
    for k in [int(text) for text in sys.argv[2:]] or [32]:
        table(name, k)


if __name__ == "__main__":
    main()
