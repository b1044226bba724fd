"""Which τ of solver=independence gives filters that halves of real tables agree on, and is it the τ that it chooses?

    python benchmarks/tau.py [--halves 24] [--tables NAME ...]

The tables of scikit-learn, raw and standardised, and 8 × 8 patches of photographs in grey. Rows are cut into random
halves; the figure is the mean |cos| between the filters of the two halves, matched, for linear PCA, τ = .1, τ = 1 and
"auto". "below": by how much auto is below the best of the others. The numbers go to docs/results/tau.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import stored
from sklearn import datasets

from sigmapca_cli.linalg.rotations import matches
from sigmapca_cli.solvers.independence.fit import answered
from sigmapca_cli.solvers.independence.solve import solve

Array = np.ndarray
SIZES = {"wine": 4, "breast_cancer": 6, "diabetes": 5, "digits": 12, "iris": 3}
METHODS: dict[str, Callable[[Array], Array]] = {
    "PCA": lambda Y: np.eye(Y.shape[1]),
    "τ = .1": lambda Y: solve(Y, 0.1, threads=1).R,
    "τ = 1": lambda Y: solve(Y, 1.0, threads=1).R,
    "auto": lambda Y: answered(Y, threads=1).result.R,
}


def patches() -> Array:
    """Return 8 × 8 patches of the photographs of scikit-learn in grey, without their means."""
    images = [image.mean(2) for image in datasets.load_sample_images().images]
    windows = [np.lib.stride_tricks.sliding_window_view(image, (8, 8))[::16, ::16] for image in images]
    rows = np.concatenate([one.reshape(-1, 64) for one in windows])
    return rows - rows.mean(1, keepdims=True)


def tables() -> dict[str, tuple[Array, int]]:
    """Return the rows and the number of components of each table."""
    found = {}
    for name, k in SIZES.items():
        X = getattr(datasets, f"load_{name}")().data
        X = X[:, X.std(0) > 0]
        found[name] = (X, k)
        found[f"{name}, standardised"] = (X / X.std(0), k)
    return {**found, "grey patches": (patches(), 16)}


def filters(X: Array, k: int, method: Callable[[Array], Array]) -> Array:
    """Return orthonormal filters (p, k)."""
    centred = X - X.mean(0)
    P = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :k]
    return P @ method(centred @ P)


def agreement(X: Array, k: int, method: Callable[[Array], Array], halves: int) -> float:
    """Return the mean |cos| between the filters of random halves."""
    found = []
    for seed in range(halves):
        order = np.random.default_rng(seed).permutation(len(X))
        half = len(X) // 2
        one, other = (filters(X[part], k, method) for part in (order[:half], order[half : 2 * half]))
        found.append(matches(one, other).mean())
    return round(float(np.mean(found)), 4)


def main() -> None:
    every = tables()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halves", type=int, default=24)
    parser.add_argument("--tables", nargs="+", choices=every, default=list(every))
    asked = parser.parse_args()
    for name in asked.tables:
        X, k = every[name]
        row = {method: agreement(X, k, METHODS[method], asked.halves) for method in METHODS}
        row["below"] = round(max(row[method] for method in METHODS if method != "auto") - row["auto"], 4)
        print(name, k, row, flush=True)
        stored.keep("tau", **{name: {"k": k, "halves": asked.halves, **row}})


if __name__ == "__main__":
    main()
