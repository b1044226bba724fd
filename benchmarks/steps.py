"""Ways to climb that were tried and not taken, on 25,000 patches of the photographs (data=natural).

    python benchmarks/steps.py merit|polar|rows|starts

merit: the Newton solver's equations, k = 32, by guarded steps in the symmetric metric of J(·; δ), halved until J rises,
δ taken anew at every step, beside the solver itself on the same rows. polar: 30 steps R ← polar(∇F) beside 30 steps of
all pairs at once, k = 64: F after each tenth. rows: k = 64 on the even half, all fourth cumulants held against every
look through the rows. starts: how many starts of solver=moments end in its answer. The numbers go to
docs/results/steps.json.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from stored import keep

from sigmapca_cli import data
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.solvers.fourth_moments import ascent, contrast
from sigmapca_cli.solvers.fourth_moments.fourth import Streamed
from sigmapca_cli.solvers.fourth_moments.maximum import LAMBDA, maximise
from sigmapca_cli.solvers.newton import jacobian as jac
from sigmapca_cli.solvers.newton import merit, steps
from sigmapca_cli.solvers.newton.jacobian import measure
from sigmapca_cli.solvers.newton.scores import lookup
from sigmapca_cli.solvers.newton.solve import solve
from sigmapca_cli.solvers.newton.stage import Rows
from sigmapca_cli.solvers.rows.parallel import threads
from sigmapca_cli.solvers.rows.projection import project

KEY, ROWS, FLOOR, LONGEST, SHORTEST = ("scaled_tanh", "true"), 25_000, 1e-3, 0.5, 1e-4
TOL, MOST, STARTS = 1e-5, 200, 11

Array = np.ndarray


def components(k: int, half: str = "all", name: str = "natural") -> Array:
    """Y (n, k) of the photographs, or of 500 CIFAR-10 images (folder in SIGMAPCA_DATA, default data/)."""
    own: Any = {"path": os.environ.get("SIGMAPCA_DATA", "data"), "images": 500} if name == "cifar10" else {}
    return project(data.build(DataConfig(name=name, half=half, **own)), k)[1]


def searched(rows: Rows, R: Array, a: Array, count: int) -> int | None:
    """Return after how many guarded steps with a line search on J the relative residual is below TOL; None: not."""
    primitive = merit.primitive_of(*KEY)
    for step in range(count + 1):
        C = R.T @ rows.C @ R
        sigma = np.sqrt(np.diag(C))
        moments = measure(rows.Y, R / sigma, lookup(*KEY), a, third=True)
        E = merit.mean_primitive(rows.Y, R / sigma, primitive, a)
        delta = 4 * E - moments.m
        before = merit.value(sigma, E, delta)
        S = jac.residual(moments, sigma)
        if np.abs(S).max() < TOL * np.mean(np.abs(moments.m) + np.abs(moments.c)):
            return step
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
        R = there
    return None


def by_merit() -> None:
    """From PCA, from the answer of F and from a random rotation: steps with the line search, and of the solver."""
    Y = components(32)
    rows = Rows.spaced(Y, ROWS, 4096, Y.shape[1])
    rows.Y = rows.Y.astype(np.float64)
    random = np.linalg.qr(np.random.default_rng(0).normal(size=(32, 32)))[0]
    starts = {"PCA": np.eye(32), "moments": maximise(Y).R, "random": random}
    found: dict[str, list[str]] = {}
    for a in (2.0, 4.0):
        for name, R in starts.items():
            with threads(None):
                count = searched(rows, R, np.full(32, a), MOST)
            own = solve(rows.Y, a=a, start=R, tol=TOL)
            shown = [f"more than {MOST}" if count is None else str(count)]
            shown += [str(own.iterations) if own.converged else f"more than {own.iterations}"]
            found[f"{a:g} {name}"] = shown
            print(f"a = {a:g} from {name}: line search {shown[0]}, the solver {shown[1]}", flush=True)
    keep("steps", merit=found)


def by_polar() -> None:
    """The generalised power method beside steps of all pairs."""
    view = Streamed.of(components(64), ROWS)

    def polar(R: Array) -> Array:
        U, _, Vt = np.linalg.svd(contrast.slopes(view.at(R), LAMBDA))
        return R @ U @ Vt

    shown: dict[str, str] = {}
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
            shown[name] = ", ".join(found)
    keep("steps", polar=shown)


def by_rows() -> None:
    """The tensor against the rows."""
    Y = components(64, "even")
    shown: dict[str, str] = {}
    for name, tensor in (("cumulants held", 64), ("rows", 0)):
        start = time.perf_counter()
        found = maximise(Y, tensor=tensor)
        shown[name] = f"{time.perf_counter() - start:.0f} s"
        print(f"{name}: converged {found.converged}, {found.iterations} steps, {shown[name]}", flush=True)
    keep("steps", rows=shown)


def by_starts() -> None:
    """How many of 11 starts end in the answer of solver=moments, by half."""
    shown: dict[str, str] = {}
    for name, k in (("natural", 32), ("cifar10", 24), ("cifar10", 32)):
        for lam in (0.1, 1 / 3):
            counts = []
            for half in ("even", "odd"):
                found = maximise(components(k, half, name), lam, starts=STARTS)
                counts.append(f"{found.agreeing} of {STARTS}")
            shown[f"{name} {k} {lam:.3g}"] = " and ".join(counts)
            print(f"{name}, k = {k}, λ = {lam:.3g}: {shown[f'{name} {k} {lam:.3g}']}", flush=True)
    keep("steps", starts=shown)


if __name__ == "__main__":
    {"merit": by_merit, "polar": by_polar, "rows": by_rows, "starts": by_starts}[sys.argv[1]]()
