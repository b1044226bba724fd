"""How often a default run that calls itself converged is not: a battery of default runs, each continued.

    python benchmarks/verdicts.py run [PART/PARTS]   # a line of JSON for each run
    python benchmarks/verdicts.py table FILE         # the table of such lines
    python benchmarks/verdicts.py examples           # what docs/verdicts.md shows: commands, and what they print

Every run is continued by the gradient flow of the exact loss over all its rows, in float64: W' = −∂L/∂W, each column in
the unit of time 1/(2σ²). The flow is integrated here without the program's own code: by LSODA where the unknowns are
few. Else small steps with momentum are made, each axis divided by its variance or that of the component, whichever is
larger. A "converged" is false if a filter turns by more than TOL.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sigmapca_cli as sp

TOL = 0.1
"""Radians, the default of `tol`."""
TIME = 3e3
"""For how long the flow is followed."""
FEW = 500
"""Largest number of unknowns that LSODA solves for; beyond it, STEPS steps with momentum are made."""
STEPS, RATE, MOMENTUM = 4000, 0.1, 0.95
FEATURES, COMPONENTS = 10, 8
Array = np.ndarray
Case = tuple[str, Any, dict[str, Any]]


def sources(kind: str, n: int, k: int, random: np.random.Generator) -> Array:
    """Return n samples (n, k) of k independent sources of one kind, variance 1."""
    sign = np.where(random.random((n, k)) < 0.5, -1.0, 1.0)
    normal, laplace = random.standard_normal((n, k)), random.laplace(size=(n, k))
    uniform = random.uniform(-1, 1, size=(n, k))
    s = {
        "Laplace": laplace,
        "uniform": uniform,
        "Laplace and uniform": np.where(np.arange(k) % 2, uniform / np.sqrt(1 / 3), laplace / np.sqrt(2)),
        "logistic": random.logistic(size=(n, k)),
        "Student, 5": random.standard_t(5, size=(n, k)),
        "exponential": random.exponential(size=(n, k)) - 1,
        "two peaks": sign + 0.4 * normal,
        "sparse": normal * (random.random((n, k)) < 0.2),
        "Gaussian": normal,
    }[kind]
    return s / s.std(0)


KINDS = (
    "Laplace", "uniform", "Laplace and uniform", "logistic", "Student, 5", "exponential", "two peaks", "sparse",
    "Gaussian",
)  # fmt: skip
RATIOS = {"equal": 1.0, "1 %": 1.01, "5 %": 1.05, "distinct": 1.3}
NUMBERS = (150, 500, 2000, 10_000, 50_000)


def planted(kind: str, spread: str, n: int, seed: int) -> Array:
    """Return rows (n, p) of orthogonally mixed sources, the variances in the ratio of `spread`, with little noise."""
    random = np.random.default_rng(seed)
    E = np.linalg.qr(random.standard_normal((FEATURES, COMPONENTS)))[0]
    s = sources(kind, n, COMPONENTS, random) * RATIOS[spread] ** (-np.arange(COMPONENTS) / 2)
    return (s @ E.T + 0.05 * random.standard_normal((n, FEATURES))).astype(np.float32)


def cases() -> Iterator[Case]:
    """Yield (name, rows or the name of data, keywords of `sp.train`) of every run of the battery."""
    count = 0
    for kind in KINDS:
        for spread in RATIOS:
            for again in range(2):
                n = NUMBERS[(count + again * 2) % len(NUMBERS)]
                count += again
                a = 0.8 if again and kind in ("uniform", "two peaks") else 4.0
                name = f"{kind}, {spread}, n={n}, a={a:g}"
                yield (
                    name,
                    (lambda k=kind, s=spread, n=n, c=count: planted(k, s, n, c)),
                    {"k": COMPONENTS, "a": a},
                )
    for table in ("wine", "breast_cancer", "digits", "diabetes"):
        for scaled in (False, True):
            for k in (5, "all"):
                name = f"{table}, {'standardised' if scaled else 'raw'}, k={k}"
                yield (
                    name,
                    (lambda t=table, s=scaled: table_of(t, s)),
                    {"k": k if table != "digits" or k == 5 else 24},
                )
    for k in (8, 32):
        for seed in range(3):
            words = ["data.images=1", "data.stride=2", "data.patch=7", f"seed={seed}"]
            yield f"photographs, k={k}, seed={seed}", "natural", {"k": k, "overrides": words}


def table_of(name: str, scaled: bool) -> Array:
    """Return the rows of a table of scikit-learn, with its constant features left out."""
    from sklearn import datasets

    X = getattr(datasets, f"load_{name}")(**({"scaled": False} if name == "diabetes" else {})).data
    X = X[:, X.std(0) > 0]
    return ((X - X.mean(0)) / X.std(0) if scaled else X).astype(np.float32)


def velocity(W: Array, X: Array, C: Array, a: float) -> Array:
    """Return −∂L/∂W (p, k) on unit columns, divided by 2σ², for L = E‖x − aσ tanh(xW/(aσ)) [Wᵀ]‖², σ and Wᵀ held."""
    W = W / np.linalg.norm(W, axis=0)
    sigma = np.sqrt(np.einsum("pk,pq,qk->k", W, C, W, optimize=True))
    G = np.zeros_like(W)
    for x in np.array_split(X, max(1, len(X) // 4096)):
        y = x @ W
        t = np.tanh(y / (a * sigma))
        G += x.T @ ((y - (a * sigma * t) @ (W.T @ W)) * (1 - t * t))
    G /= len(X) * sigma**2
    return G - W * (W * G).sum(0)


def continued(W: Array, X: Array, a: float) -> Array:
    """Return where the flow from W (p, k) on the rows X (n, p) leads, unit columns."""
    X = np.asarray(X, np.float64)
    X = X - X.mean(0)
    C = X.T @ X / len(X)
    if W.size <= FEW:
        from scipy.integrate import solve_ivp

        found = solve_ivp(
            lambda t, w: velocity(w.reshape(W.shape), X, C, a).ravel(),
            (0, TIME), W.ravel(), method="LSODA", rtol=1e-4, atol=1e-6, t_eval=[TIME],
        )  # fmt: skip
        end = found.y[:, -1].reshape(W.shape)
    else:
        end, speed = W.copy(), np.zeros_like(W)
        values, axes = np.linalg.eigh(C)
        for _ in range(STEPS):
            variances = np.einsum("pk,pq,qk->k", end, C, end, optimize=True)
            slow = variances / np.maximum(variances, np.maximum(values, 0)[:, None])
            pull = axes @ (slow * (axes.T @ velocity(end, X, C, a)))
            speed = MOMENTUM * speed + RATE * (pull - end * (end * pull).sum(0))
            end = end + speed
            end /= np.linalg.norm(end, axis=0)
    return end / np.linalg.norm(end, axis=0)


def rows_of(run: Any, given: Any) -> Array:
    """Return the rows (n, p) that a run was trained on."""
    if not isinstance(given, str):
        return np.asarray(given)
    from sigmapca_cli.composition.compose import compose_job
    from sigmapca_cli.runner.execute import load_source

    source = load_source(compose_job([f"data={given}", *run["overrides"]]).cfg)
    return source.take(np.arange(source.n))


def measured(case: Case, outputs: str) -> dict[str, Any]:
    """Return what a run of the battery says, and how far the flow leads its filters away."""
    name, rows, settings = case
    given = rows if isinstance(rows, str) else rows()
    began = time.perf_counter()
    run = sp.train(given, outputs=outputs, **settings)
    seconds = time.perf_counter() - began
    W = np.asarray(run.filters, np.float64)
    X = rows_of(settings, given)
    end = continued(W, X, float(run.attrs["a"]))
    moved = np.arccos(np.minimum(np.abs((W / np.linalg.norm(W, axis=0) * end).sum(0)), 1))
    Xc = np.asarray(X, np.float64) - X.mean(0, dtype=np.float64)
    speed = np.linalg.norm(velocity(W, Xc, Xc.T @ Xc / len(Xc), float(run.attrs["a"])), axis=0)
    return {
        "name": name,
        "converged": bool(run.attrs["converged"]),
        "angle": float(run.evaluation["angle"]),
        "moved": float(moved.max()),
        "gradient": float(speed.max()),
        "steps": int(run.evaluation["steps"]),
        "seconds": round(seconds, 2),
    }


def table(lines: list[dict[str, Any]]) -> None:
    """Print the counts, and the runs whose verdict the flow contradicts."""
    print("| runs | said converged | of these false | said not converged | of these still |")
    print("|---|---|---|---|---|")
    groups = {"planted": [], "tables": [], "photographs": []}  # type: dict[str, list[dict[str, Any]]]
    for line in lines:
        kind = (
            "photographs"
            if "photographs" in line["name"]
            else "planted"
            if "n=" in line["name"]
            else "tables"
        )
        groups[kind].append(line)
    for kind, each in [*groups.items(), ("all", lines)]:
        said = [line for line in each if line["converged"]]
        other = [line for line in each if not line["converged"]]
        false = sum(line["moved"] > TOL for line in said)
        still = sum(line["moved"] <= TOL for line in other)
        print(f"| {kind} | {len(said)} of {len(each)} | {false} | {len(other)} | {still} |")
    print("\n| run | says | reported angle | the flow turns a filter by |\n|---|---|---|---|")
    for line in lines:
        if line["converged"] == (line["moved"] > TOL):
            word = "converged" if line["converged"] else "not converged"
            print(f"| {line['name']} | {word} | {line['angle']:.3f} | {line['moved']:.3f} |")


DATA = "data=planted data.n=1500 data.p=8 data.k=4 k=4"
EXAMPLES = (
    f"train model=nlpca a=4 {DATA}",
    "evaluate last --certificate",
    f"train model=nlpca a=4 {DATA} steps=40",
    f"train model=nlpca a=4 {DATA} data.sources=uniform data.group=4",
    f"train model=nlpca a=4 {DATA} data.n=60 data.group=4",
    "evaluate last --certificate",
)
"""The commands of docs/verdicts.md, in its order."""


def examples() -> None:
    """Print each command, and what it prints besides its progress and the name of its folder."""
    import subprocess

    with tempfile.TemporaryDirectory() as folder:
        for command in EXAMPLES:
            done = subprocess.run(
                ["sigmapca", *command.split()], cwd=folder, capture_output=True, text=True, check=False
            )
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "step " not in line[:6]]
            print(
                f"$ sigmapca {command}",
                *(line for line in lines if "outputs/" not in line),
                "",
                sep="\n",
                flush=True,
            )


def main(words: list[str]) -> None:
    if words[0] == "examples":
        return examples()
    if words[0] == "table":
        return table([json.loads(line) for line in Path(words[1]).read_text().splitlines()])
    part, parts = (int(word) for word in (words[1] if len(words) > 1 else "1/1").split("/"))
    with tempfile.TemporaryDirectory() as outputs:
        for case in list(cases())[part - 1 :: parts]:
            print(json.dumps(measured(case, outputs)), flush=True)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
