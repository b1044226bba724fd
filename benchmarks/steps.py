"""Ways to climb that were tried and not taken, on 25,000 patches of the photographs (data=natural).

    python benchmarks/steps.py [merit|polar|rows]

merit: the Newton solver's equations at a = 2, k = 32, by guarded steps in the symmetric metric of J(·; δ), halved
until J rises, δ taken anew at every step; from PCA and from the answer of solver=moments. Printed: step, relative
residual, share of the step taken. polar: 30 steps R ← polar(∇F) beside 30 steps of all pairs at once, k = 64: F after
each tenth. rows: k = 64 on the even half, all fourth cumulants held against every look through the rows.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from sigmapca_cli import sources
from sigmapca_cli.solvers import ascent, contrast, merit, steps
from sigmapca_cli.solvers import jacobian as jac
from sigmapca_cli.solvers.maximum import LAMBDA, maximise
from sigmapca_cli.solvers.moments import measure
from sigmapca_cli.solvers.parallel import threads
from sigmapca_cli.solvers.projected import project
from sigmapca_cli.solvers.scores import lookup
from sigmapca_cli.solvers.stage import Rows
from sigmapca_cli.solvers.streamed import Streamed
from sigmapca_cli.sources.config import DataConfig

KEY, ROWS, FLOOR, LONGEST, SHORTEST = ("scaled_tanh", "true"), 25_000, 1e-3, 0.5, 1e-4

Array = np.ndarray


def components(k: int, half: str = "all") -> Array:
    """Y (n, k) of the photographs."""
    return project(sources.build(DataConfig(name="natural", half=half)), k)[1]


def searched(rows: Rows, R: Array, a: Array, count: int) -> None:
    """Guarded steps with a line search on J."""
    primitive = merit.primitive_of(*KEY)
    for step in range(count + 1):
        C = R.T @ rows.C @ R
        sigma = np.sqrt(np.diag(C))
        moments = measure(rows.Y, R / sigma, lookup(*KEY), a, third=True)
        E = merit.mean_primitive(rows.Y, R / sigma, primitive, a)
        delta = 4 * E - moments.m
        before = merit.value(sigma, E, delta)
        S = jac.residual(moments, sigma)
        metric = jac.pack(np.outer(sigma, sigma) ** 2)
        root = np.sqrt(metric * steps.preconditioner(*jac.curvature(moments, sigma)))
        J = metric[:, None] * jac.jacobian(moments, sigma, C)
        values, V = np.linalg.eigh((J + J.T) / 2 / np.outer(root, root))
        slope = V.T @ (-metric * jac.pack(S) / root)
        theta = steps.limited(V @ (slope / np.maximum(np.abs(values), FLOOR)) / root, LONGEST)
        share = 1.0
        while share > SHORTEST:
            there = steps.rotate(R, share * theta)
            std = np.sqrt(np.diag(there.T @ rows.C @ there))
            risen = merit.value(std, merit.mean_primitive(rows.Y, there / std, primitive, a), delta)
            if risen >= before:
                break
            share /= 2
        if step % 20 == 0:
            scale = np.mean(np.abs(moments.m) + np.abs(moments.c))
            print(f"  {step}: {np.abs(S).max() / scale:.1e} {share:.2g}", flush=True)
        R = there


def by_merit() -> None:
    """From PCA, and from the answer of F."""
    Y = components(32)
    rows = Rows.spaced(Y, ROWS, 4096)
    rows.Y = rows.Y.astype(np.float64)
    for name, R in (("PCA", np.eye(32)), ("moments", maximise(Y).R)):
        print(f"line search on J, a = 2, from {name}")
        with threads(None):
            searched(rows, R, np.full(32, 2.0), 80)


def by_polar() -> None:
    """The generalised power method beside steps of all pairs."""
    view = Streamed.of(components(64), ROWS)

    def polar(R: Array) -> Array:
        U, _, Vt = np.linalg.svd(contrast.slopes(view.at(R), LAMBDA))
        return R @ U @ Vt

    with threads(None):
        for name, move in (
            ("polar", polar),
            ("all pairs", lambda R: ascent.pairwise(view, R, LAMBDA)[0]),
        ):
            R, found = np.eye(64), []
            for count in range(30):
                R = move(R)
                found += [f"{ascent.value(view, R, LAMBDA):.2f}"] if count % 10 == 9 else []
            print(f"{name}: F after 10, 20, 30 steps {', '.join(found)}", flush=True)


def by_rows() -> None:
    """The tensor against the rows."""
    Y = components(64, "even")
    for name, tensor in (("cumulants held", 64), ("rows", 0)):
        start = time.perf_counter()
        found = maximise(Y, tensor=tensor)
        seconds = time.perf_counter() - start
        print(f"{name}: converged {found.converged}, {found.iterations} steps, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    {"merit": by_merit, "polar": by_polar, "rows": by_rows}[sys.argv[1]]()
