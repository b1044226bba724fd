"""Fifteen kinds of independent sources, and Gaussian ones: which method finds them.

    python benchmarks/kinds.py [-n 500 2000 10000] [--variances equal near] [--methods NAME ...] [--repeats 4]

Rows X (n, 8) hold five sources in orthonormal directions, with noise of standard deviation .05. Their own standard
deviations are 3, 3, 2.85, 1.8 and 1.8 ("near") or all 1 ("equal"). The figure is the mean |cos| of what a method found
with the true directions, matched; for methods that whiten, of the columns of their mixing matrix. "τ = 1" makes the
total correlation smallest; "auto" is τ by the test of dependence. The figures go to docs/results/kinds.json in place of
older ones of the same n, variances and method, so that it runs in pieces.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import stored

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
from solver_helpers import matched
from source_kinds import ALL, SIGMA, planted, projected

from sigmapca_cli import train
from sigmapca_cli.solvers.fourth_moments.maximum import maximise
from sigmapca_cli.solvers.independence.fit import answered
from sigmapca_cli.solvers.independence.solve import solve
from sigmapca_cli.solvers.main_loss.automatic import start_and_a
from sigmapca_cli.solvers.newton.solve import solve as newton

Array = np.ndarray
K = 5
VARIANCES = {"near": SIGMA, "equal": (1.0,) * K}


def in_span(rotation: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A method that finds a rotation of the principal components, as one from rows to directions (p, k)."""

    def directions(X: Array) -> Array:
        Y, P = projected(X, K)
        return P @ rotation(Y)

    return directions


def fastica(fun: str) -> Callable[[Array], Array]:
    def directions(X: Array) -> Array:
        from sklearn.decomposition import FastICA

        return FastICA(K, whiten="unit-variance", fun=fun, random_state=0, max_iter=500).fit(X).mixing_

    return directions


def picard(X: Array) -> Array:
    from picard import picard

    whitening, unmixing, _ = picard(X.T, n_components=K, ortho=True, extended=True, random_state=0)
    return np.linalg.pinv(unmixing @ whitening)


def newton_auto(Y: Array) -> Array:
    at = start_and_a(Y, threads=1)
    return newton(Y, a=at.a, start=at.R, threads=1).R


def by_steps(X: Array) -> Array:
    with tempfile.TemporaryDirectory() as folder:
        return np.asarray(train(X, k=K, a="auto", outputs=folder).filters)


METHODS: dict[str, Callable[[Array], Array]] = {
    "PCA": in_span(lambda Y: np.eye(K)),
    "FastICA": fastica("logcosh"),
    "FastICA cube": fastica("cube"),
    "picard": picard,
    "moments": in_span(lambda Y: maximise(Y, threads=1).R),
    "newton a=auto": in_span(newton_auto),
    "steps a=auto": by_steps,
    "τ = 1": in_span(lambda Y: solve(Y, threads=1).R),
    "τ = .1": in_span(lambda Y: solve(Y, 0.1, threads=1).R),
    "auto": in_span(lambda Y: answered(Y, threads=1).result.R),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", nargs="+", type=int, default=[500, 2000, 10_000])
    parser.add_argument("--variances", nargs="+", choices=VARIANCES, default=list(VARIANCES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=4)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # of peers that did not converge
    for variances in asked.variances:
        for n in asked.n:
            key = f"n={n} {variances}"
            print(key, *asked.methods, sep=" | ", flush=True)
            for kind in ALL:
                tables = [planted(kind, n, seed, VARIANCES[variances]) for seed in range(asked.repeats)]
                found = {
                    name: round(float(np.mean([matched(METHODS[name](X), E) for X, E in tables])), 4)
                    for name in asked.methods
                }
                print(kind, *found.values(), sep=" | ", flush=True)
                table = stored.read("kinds").get(key, {})
                table[kind] = {**table.get(kind, {}), **found}
                stored.keep("kinds", **{key: table})


if __name__ == "__main__":
    main()
