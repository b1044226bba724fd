"""Time to the answer against scikit-learn's FastICA and python-picard: whole processes on the same files."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from timing import SIGMAPCA, Row, in_turn, process, row

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "build" / "peers"

PEER = """
import numpy as np, sys
X = np.load(sys.argv[1]); k = int(sys.argv[2])
{imports}
mean = X.mean(0); values, E = np.linalg.eigh(np.cov(X.T, bias=True)); E = E[:, ::-1][:, :k]
Z = (X - mean) @ E / np.sqrt(values[::-1][:k])
{fit}
np.save(sys.argv[3], E / np.sqrt(values[::-1][:k]) @ W.T)
"""
FITS = {
    "scikit-learn FastICA": (
        "from sklearn.decomposition import FastICA",
        "W = FastICA(whiten=False, max_iter=1000, tol=1e-6, random_state=0).fit(Z).components_",
    ),
    "python-picard": (
        "from picard import picard",
        "_, W, _ = picard(Z.T, whiten=False, centering=False, random_state=0, max_iter=500)",
    ),
}
SIZES = [(n, k) for n in (10_000, 100_000, 1_000_000) for k in (8, 32, 64)]
SLOW = 20_000_000  # entries of the projected rows beyond which python-picard takes many minutes: not run


def peers() -> str:
    """The interpreter of an environment that holds the peers and nothing of ours; made on first use."""
    python = PEERS / "bin" / "python"
    if not (PEERS / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", PEERS], check=True)
        wanted = ["numpy", "scipy", "scikit-learn", "python-picard"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned(wanted)], check=True)
        (PEERS / ".ready").touch()
    return str(python)


def pinned(names: list[str]) -> list[str]:
    """The versions that are installed here, so that both sides stand on the same libraries."""
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in names]


def commands(rows: str, k: int, only: tuple[str, ...] = ("newton", *FITS)) -> dict[str, list[str]]:
    """The command of each way to the answer on a file of rows."""
    ours = [*SIGMAPCA, "train", "data=array", f"data.path={rows}", "data.standardise=none", f"k={k}"]
    ours += ["if_exists=new"]
    found = {
        "newton": [*ours, "solver=newton", "--run-dir", "newton"],
        "stochastic": [*ours, "steps=6000", "--run-dir", "stochastic"],
    }
    for peer, (imports, fit) in FITS.items():
        code = PEER.format(imports=imports, fit=fit)
        found[peer] = [peers(), "-c", code, rows, str(k), f"{peer}.npy"]
    return {name: command for name, command in found.items() if name in only}


def measured(n: int, p: int, k: int, repeats: int, only: tuple[str, ...]) -> tuple[dict, dict]:
    """Seconds of whole processes, and the mean matched |cos| with the true filters that each reached."""
    import numpy as np

    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.evaluation.metrics import mcc
    from sigmapca_cli.storage.read import StoredRun

    group = max(3, k // 8)  # variances halve from group to group: the last must stand above the noise
    source: Any = build(DataConfig(name="planted", n=n, p=p, k=k, group=group, standardise="none"))
    true = source.truth.filters
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", np.concatenate(list(source.blocks())))
        given = commands("x.npy", k, only)

        def timer(way: str, command: list[str]):
            run = process(*command, folder=name)

            def again() -> float:
                shutil.rmtree(folder / way, ignore_errors=True)
                return run()

            return again

        found = in_turn({way: timer(way, command) for way, command in given.items()}, repeats)
        scores = {}
        for way in given:
            path = folder / f"{way}.npy"
            W: Any = np.load(path) if path.exists() else StoredRun.open(folder / way).filters
            scores[way] = round(float(mcc(W, true)), 4)
    return found, scores


def answer() -> Row:
    """Planted data, p = 64, k = 12, 100,000 rows: until the sources are found."""
    found, scores = measured(100_000, 64, 12, 5, ("newton", *FITS))
    return row("time to the answer, s", found, mcc=scores)


def answers() -> Row:
    """The same over sizes, with stochastic training beside it."""
    table: dict[str, object] = {}
    for n, k in SIZES:
        only = ("newton", "stochastic", *FITS)
        if n * k > SLOW:
            only = tuple(way for way in only if way != "python-picard")
        found, scores = measured(n, max(64, 2 * k), k, 3 if n * k < 5_000_000 else 1, only)
        table[f"n={n} k={k}"] = {**row("", found), "mcc": scores}
        print(
            f"  n={n} k={k}", {way: (round(min(t), 2), scores[way]) for way, t in found.items()}, flush=True
        )
    return {"name": "time to the answer over sizes, s", **table}


def write_matrix(source, path: Path) -> None:
    """All rows as one .npy file."""
    import numpy as np

    matrix = np.lib.format.open_memmap(path, "w+", np.float32, (source.n, source.p))
    at = 0
    for block in source.blocks():
        matrix[at : at + len(block)] = block
        at += len(block)


def pca() -> Row:
    """Linear PCA of half a million image patches, k = 32, and scikit-learn's on the matrix of them."""
    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    code = (
        "import numpy as np, sys; from sklearn.decomposition import {0}; {0}(32{1}).fit(np.load(sys.argv[1]))"
    )
    with tempfile.TemporaryDirectory() as name:
        write_matrix(build(DataConfig(name="natural")), Path(name) / "x.npy")
        ways = {
            "sigmapca": [*SIGMAPCA, "train", "model=pca_svd"],
            "scikit-learn PCA": [peers(), "-c", code.format("PCA", ""), "x.npy"],
            "IncrementalPCA": [peers(), "-c", code.format("IncrementalPCA", ", batch_size=10_000"), "x.npy"],
        }
        found = in_turn({way: process(*command, folder=name) for way, command in ways.items()}, 3)
    return row("PCA of 532,480 patches, k = 32, s", found)


def ica() -> Row:
    """ICA of half a million image patches, k = 32: through the covariance, and scikit-learn on the matrix itself."""
    import numpy as np

    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.evaluation.metrics import mcc
    from sigmapca_cli.storage.read import StoredRun

    source = build(DataConfig(name="natural"))
    code = (
        "import numpy as np, sys, warnings\n"
        "from sklearn.decomposition import FastICA\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    model = FastICA(32, whiten='unit-variance', random_state=0).fit(np.load(sys.argv[1]))\n"
        "np.save(sys.argv[2], model.components_.T); print(model.n_iter_, len(caught))"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_matrix(source, folder / "x.npy")
        ways = {
            "lica newton": [*SIGMAPCA, "train", "model=lica", "solver=newton", "--run-dir", "newton"],
            "scikit-learn": [peers(), "-c", code, "x.npy", "sk.npy"],
        }
        found = in_turn({way: process(*command, folder=name) for way, command in ways.items()}, 1)
        run: Any = StoredRun.open(folder / "newton")
        same = round(float(mcc(run.encoder, np.load(folder / "sk.npy"))), 4)
    converged = bool(run.attrs["converged"])
    return row("ICA of 532,480 patches, k = 32, s", found, converged=converged, agreement=same)


def halves() -> Row:
    """Mean matched |cos| of 32 filters between disjoint halves of the images, and seconds for one half."""
    from sigmapca_cli.evaluation.agreement import agreement
    from sigmapca_cli.storage.read import StoredRun

    data = ["data=natural"]
    if folder := os.environ.get("SIGMAPCA_DATA"):
        data = ["data=cifar10", "data.images=500", f"data.path={folder}"]
    ways = {
        "linear PCA": ["model=pca_svd"],
        "FastICA": ["model=fastica", "model.tolerance=1e-4", "model.max_iter=200"],  # scikit-learn's own
        "stochastic, a=4": ["a=4", "epochs=6"],
        "stochastic, a=2": ["a=2", "epochs=6"],
        "newton, a=8": ["a=8", "solver=newton"],
        "newton, a=4": ["a=4", "solver=newton"],
        "newton, a=2": ["a=2", "solver=newton"],
    }
    table: dict[str, object] = {"name": f"agreement between halves, {data[0]}"}
    with tempfile.TemporaryDirectory() as name:
        for number, (way, overrides) in enumerate(ways.items()):
            filters, seconds = [], []
            for seed, half in ((1, "even"), (2, "odd")):
                run = f"{number}{half}"
                given = [*SIGMAPCA, "train", *data, f"data.half={half}", f"seed={seed}", *overrides]
                seconds.append(process(*given, "--run-dir", run, folder=name)())
                opened: Any = StoredRun.open(Path(name) / run)
                filters.append(opened.filters if opened.rotation is None else opened.encoder)
            found = agreement(*filters).mean
            table[way] = {"agreement": round(float(found), 4), "seconds": round(min(seconds), 2)}
            print(f"  {way}: {table[way]}", flush=True)
    return table
