"""How long solver=independence takes, as a whole process, beside FastICA and Picard, and beside solver=newton.

    python benchmarks/independence.py peers [-n 10000 100000 1000000] [-k 8 64] [--repeats 3]
    python benchmarks/independence.py photographs      # 532,480 patches, k = 32, beside solver=newton
    python benchmarks/independence.py many             # k = 256, 100,000 rows

Rows of k Laplace sources, orthonormally mixed, with standard deviations from 2 to 1. Each process reads the rows, finds
k components and writes them; they are timed in turn. FastICA and Picard have their default settings, but for enough
iterations and a tolerance of 1e-6, as solver=independence has. MCC is the mean |cos| with the true directions, matched.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile

import numpy as np
from timing import SIGMAPCA, in_turn, process, ratio, row

PEERS = {
    "FastICA": "from sklearn.decomposition import FastICA\n"
    "model = FastICA(whiten='unit-variance', max_iter=1000, tol=1e-6, random_state=0)\n"
    "Y, A = model.fit_transform(X), model.mixing_\n",
    "Picard": "from picard import picard\n"
    "mean = X.mean(0)\n"
    "K, W, Y = picard((X - mean).T, max_iter=1000, tol=1e-6, random_state=0)\n"
    "A, Y = np.linalg.pinv(W @ K), Y.T\n",
}


def rows_of(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, k), float32, and the true directions (k, k)."""
    random = np.random.default_rng(0)
    E = np.linalg.qr(random.standard_normal((k, k)))[0]
    return (random.laplace(size=(n, k)).astype(np.float32) * np.linspace(2, 1, k, dtype=np.float32)) @ E.T, E


def mcc(A: np.ndarray, E: np.ndarray) -> float:
    """Return the mean matched |cos| of the columns of A with those of E."""
    from sigmapca_cli.linalg.rotations import matches

    return round(float(matches(A / np.linalg.norm(A, axis=0), E).mean()), 4)


def peers(n: int, k: int, repeats: int) -> dict[str, object]:
    """Return the median seconds of the three processes, and the ratio of ours to the faster of the other two."""
    with tempfile.TemporaryDirectory() as folder:
        X, E = rows_of(n, k)
        np.save(f"{folder}/x.npy", X)
        del X
        ours = ["train", "data=array", "data.path=x.npy", f"k={k}", "solver=independence", "if_exists=new"]
        commands = {"independence": (*SIGMAPCA, *ours)}
        for name, fit in PEERS.items():
            code = f"import numpy as np\nX = np.load('x.npy')\n{fit}np.savez('{name}.npz', A=A, Y=Y)\n"
            commands[name] = (sys.executable, "-c", code)
        found = in_turn({name: process(*each, folder=folder) for name, each in commands.items()}, repeats)
        directions = {name: np.load(f"{folder}/{name}.npz")["A"] for name in PEERS}
        import sigmapca_cli as sp

        directions["independence"] = sp.runs(f"{folder}/outputs")[-1].filters
        faster = min(PEERS, key=lambda name: sorted(found[name])[len(found[name]) // 2])
        return row(
            f"n={n}, k={k}",
            found,
            ratio_to_the_faster=round(ratio(found, "independence", faster), 2),
            mcc={name: mcc(np.asarray(A, np.float64), E) for name, A in directions.items()},
        )


def solvers(name: str, words: list[str], others: tuple[list[str], ...], repeats: int) -> dict[str, object]:
    """Return the median seconds of solver=independence, and of other settings, on the same data."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            " ".join(own): process(*SIGMAPCA, "train", *words, *own, "if_exists=new", folder=folder)
            for own in (["solver=independence"], *others)
        }
        found = in_turn(commands, repeats)
        ratios = {
            f"ratio to {' '.join(own)}": ratio(found, "solver=independence", " ".join(own)) for own in others
        }
        return row(name, found, **{key: round(value, 2) for key, value in ratios.items()})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("peers", "photographs", "many"))
    parser.add_argument("-n", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("-k", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.what == "peers":
        for n in given.n:
            for k in given.k:
                print(json.dumps(peers(n, k, given.repeats), ensure_ascii=False), flush=True)
    elif given.what == "photographs":
        others = (["solver=independence", "solver.tau=0.1"], ["solver=newton"])
        found = solvers("photographs, k=32", ["data=natural", "k=32"], others, given.repeats)
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(json.dumps(peers(100_000, 256, 1), ensure_ascii=False))


if __name__ == "__main__":
    main()
