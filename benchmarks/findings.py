"""The small runs behind docs/findings.md, and the map of what separates: docs/results/findings.json.

    python benchmarks/findings.py [runs] [map] [starts]

`sigmapca reproduce --write-docs` then makes the page. A run is a command; its overrides are stored beside its numbers
(minutes on two cores).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from stored import keep, read

PLANTED = ("data=planted", "k=12", "steps=2000")
SMALL = ("data=planted", "data.p=12", "data.k=6", "data.group=3", "data.n=20000", "k=6", "steps=2000")
UNIFORM, MIXED = ("data.sources=uniform",), ("data.sources=mixed",)
TANH3 = ("nonlinearity=scaled_tanh", "a=3")
IDENTITY = ("model=nlpca", "nonlinearity=identity", "init=orthogonal", "data=planted", "k=12")

RUNS: dict[str, tuple[str, ...]] = {
    "identity start": (*IDENTITY, "optimizer=sgd", "steps=1"),
    "identity": (*IDENTITY, "optimizer=sgd", "steps=2000"),
    "identity adam": (*IDENTITY, "steps=2000"),
    "linear_ae": ("model=linear_ae", "init=orthogonal", "lr=0.01", "data=planted", "k=12"),
    "main": ("model=nlpca", "a=3", *PLANTED),
    "conventional": ("model=nlpca_conventional", *TANH3, *PLANTED),
    "no_sg": ("model=nlpca_trainable_no_sg", *TANH3, *PLANTED),
    "no_sg uniform": ("model=nlpca_trainable_no_sg", *TANH3, *SMALL, *UNIFORM),
    "conventional uniform": ("model=nlpca_conventional", *TANH3, *SMALL, *UNIFORM),
    "conventional uniform random": (
        "model=nlpca_conventional", *TANH3, *SMALL, *UNIFORM, "init=orthogonal",
    ),
    "whitened uniform": ("model=nlpca_whitened", *PLANTED, *UNIFORM),
    "whitened laplace": ("model=nlpca_whitened", *PLANTED),
    "lica main": ("model=lica", "model.second=main", *PLANTED),
    "lica printed": ("model=lica", "model.second=conventional", "a=3", *PLANTED),
    "lica paper uniform": ("model=lica", "recipe=paper", *PLANTED, *UNIFORM),
    "rica 1": ("model=rica", "model.beta_0=1", *PLANTED),
    "rica": ("model=rica", *PLANTED),
    "auto": ("model=nlpca", "a=auto", *PLANTED, *MIXED),
    "sigma laplace 2000": ("model=nlpca", "sigma=trainable", "a=1", *SMALL),
    "sigma laplace 6000": ("model=nlpca", "sigma=trainable", "a=1", *SMALL[:-1], "steps=6000"),
    "sigma uniform 6000": ("model=nlpca", "sigma=trainable", "a=1", *SMALL[:-1], "steps=6000", *UNIFORM),
    "asymmetric": ("model=nlpca_asymmetric", *SMALL, *UNIFORM),
    **{
        f"adaptive {seed}": ("model=nlpca_asymmetric_adaptive", *SMALL, "init=orthogonal", f"seed={seed}")
        for seed in range(3)
    },
    "adaptive": ("model=nlpca_asymmetric_adaptive", *SMALL),
}  # fmt: skip


def run(overrides: tuple[str, ...]) -> dict[str, Any]:
    """Train once and return the command with its MCC and explained variance."""
    from sigmapca_cli.storage.read import StoredRun

    with tempfile.TemporaryDirectory() as place:
        words = ["train", *overrides]
        command = [sys.executable, "-m", "sigmapca_cli", *words, "--run-dir", f"{place}/run"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr}")
        found = StoredRun.open(Path(place, "run")).evaluation
    numbers = {name: f"{float(found[name]):.4f}" for name in ("mcc", "explained_variance")}
    return {"command": f"sigmapca {' '.join(words)}", **numbers}


def separation() -> list[list[str]]:
    """Return the rows of `separation_map.py`."""
    script = Path(__file__).with_name("separation_map.py")
    text = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def starts() -> dict[str, str]:
    """Return the mean |cos| where training ends from starts at an angle to the true axes, worst of three seeds."""
    from separation_map import separated

    cases = [("uniform", 1.2, angle) for angle in (10, 25, 35)] + [
        ("laplace", a, angle) for a in (1.5, 1.8) for angle in (10, 25)
    ]
    return {
        f"{kind} {a} {angle}": f"{min(separated(kind, a, 'true', 3000, seed, angle) for seed in (1, 2, 3)):.4f}"
        for kind, a, angle in cases
    }


def main() -> None:
    """Make what is named, or everything."""
    asked = sys.argv[1:] or ["runs", "map", "starts"]
    runs = read("findings").get("runs", {})
    for name, overrides in RUNS.items() if "runs" in asked else ():
        runs[name] = run(overrides)
        print(name, runs[name], flush=True)
    keep("findings", runs=runs)
    if "map" in asked:
        keep("findings", map={"head": ["a", *HEAD], "rows": separation()})
    if "starts" in asked:
        keep("findings", starts=starts())


HEAD = ("Laplace, h′ true", "Laplace, h′ = 1", "uniform, h′ true", "uniform, h′ = 1")

if __name__ == "__main__":
    main()
