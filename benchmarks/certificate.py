"""Errors and certificate of solver=independence, by simulation: the null, coverage, and answers that are wrong.

    python benchmarks/certificate.py [null] [slow] [coverage] [wrong] [--tables N]

null: Gaussian rows of equal variance; the share of tables of which some pair counts as identified (at most .05 is
right). slow: the same of Gaussian series of equal variance and spectra, by solver. coverage: how many 95 % intervals of
the angles of four sources hold the true angle, by row and, for rows in time, by groups. wrong: the sources of the
fifteen kinds in eight features; how many filters the certificate calls identified, and how many of them have a |cos|
below .9 with the nearest true direction. τ is the default of the command. The numbers go to
docs/results/certificate.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import stored

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
from source_kinds import ALL, KINDS, planted, projected, series

from sigmapca_cli.evaluation.identifiability import certify
from sigmapca_cli.evaluation.independence import certify_independence
from sigmapca_cli.sklearn import SigmaPCA
from sigmapca_cli.solvers.independence.errors import errors
from sigmapca_cli.solvers.independence.fit import answered
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import solve
from sigmapca_cli.solvers.newton.solve import solve as newton

Array = np.ndarray
SOURCES = ("laplace", "t, 3 df", "exponential", "uniform", "Poisson(2)", "±1", "two-valued, kurtosis 0")
APART = (1.0, 1.0, 1.0, 1.0), (1.331, 1.21, 1.1, 1.0)
"""Standard deviations of the sources: equal, and 10 % apart."""


def null(tables: int) -> dict[str, float]:
    """Return the share of tables of Gaussian rows of equal variance with a pair that counts as identified."""
    found = {}
    for n in (500, 1000, 2000):
        for k in (4, 6, 8):
            wrong = 0
            for seed in range(tables):
                Y = np.random.default_rng((seed, n, k)).normal(size=(n, k))
                result = answered(Y, threads=1).result
                told = errors(Rows.of(Y), result.R, result.tau).identified
                wrong += bool(told[np.triu_indices(k, 1)].any())
            found[f"n={n} k={k}"] = wrong / tables
            print("null", f"n={n} k={k}", wrong / tables, flush=True)
    return found


def slow(tables: int) -> dict[str, dict[str, float]]:
    """Return the share of tables of slow Gaussian series of equal variance with a component called identified."""
    found = {}
    for phi, n, k in ((0.98, 3000, 3), (0.95, 1000, 5)):
        tables_of = [series("Gaussian", n, seed, np.full(k, phi), np.ones(k)) for seed in range(tables)]
        shares = {}
        for solver in ("independence", "newton", "moments"):
            model = SigmaPCA(k, solver=solver)
            wrong = [model.fit(X).certificate(X).identified.any() for X in tables_of]
            shares[solver] = round(float(np.mean(wrong)), 3)
        found[f"φ={phi} n={n} k={k}"] = shares
        print("slow", f"φ={phi} n={n} k={k}", shares, flush=True)
    return found


def covered(S: Array, rotation: Array, ordered: bool) -> Array:
    """Return whether the interval of each pair's angle holds the true angle; S (n, 4) are the sources."""
    Y = S @ rotation.T
    result = solve(Y, start=rotation, starts=1, threads=1)
    angle = errors(Rows.of(Y), result.R, 1.0, ordered=ordered).angle
    A = rotation.T @ result.R
    order = np.abs(A).argmax(1)
    A = A[:, order] * np.sign(np.diag(A[:, order]))
    i, j = np.triu_indices(len(A), 1)
    return np.abs(A - A.T)[i, j] / 2 <= 1.96 * angle[np.ix_(order, order)][i, j]


def coverage(tables: int) -> dict[str, dict[str, float]]:
    """Return the coverage of intervals of 95 %, for equal variances and for variances 10 % apart."""
    found = {}
    for kind in (*SOURCES, "laplace AR(1), φ = .7"):
        cells = {}
        for name, sigma in zip(("equal", "10 % apart"), APART, strict=True):
            inside = []
            for seed in range(tables):
                rng = np.random.default_rng((seed, 11))
                if kind in ALL:
                    S = ALL[kind](rng, (1000, 4)) * sigma
                else:
                    S = series("laplace", 10_000, (seed, 12), np.full(4, 0.7), np.array(sigma))
                rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
                inside.append(covered(S, rotation, kind not in ALL))
            cells[name] = round(float(np.mean(inside)), 3)
        found[kind] = cells
        print("coverage", kind, cells, flush=True)
    return found


def wrong(tables: int) -> dict[str, dict[str, list[int]]]:
    """Return, for each kind and solver, the filters that count as identified, and those of them that are wrong."""
    found = {}
    for kind in KINDS:
        counts = {"independence": np.zeros(2, int), "newton a=auto": np.zeros(2, int)}
        for seed in range(tables):
            X, E = planted(kind, 2000, seed)
            Y, P = projected(X, 5)
            result = answered(Y, threads=1).result
            answers = {"independence": (result.R, certify_independence(Y @ result.R, result.tau).identified)}
            other = newton(Y, threads=1)
            answers["newton a=auto"] = (other.R, certify(Y @ other.R, a=other.a).identified)
            for name, (R, identified) in answers.items():
                cosine = np.abs(E.T @ P @ R).max(0)
                counts[name] += [identified.sum(), (identified & (cosine < 0.9)).sum()]
        found[kind] = {name: [int(value) for value in pair] for name, pair in counts.items()}
        print("wrong", kind, found[kind], flush=True)
    return found


PARTS = {"null": (null, 400), "slow": (slow, 60), "coverage": (coverage, 100), "wrong": (wrong, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--tables", type=int)
    asked = parser.parse_args()
    for name in asked.parts:
        part, tables = PARTS[name]
        stored.keep(
            "certificate", **{name: {"tables": asked.tables or tables, "found": part(asked.tables or tables)}}
        )


if __name__ == "__main__":
    main()
