"""Seconds and memory against the number of rows n, features p and components k, beside the usual peers.

    python benchmarks/growth.py [rows] [features] [components] [sparse]

Every cell is a process of its own, from its start to its end: its wall time, and the largest memory it held. Data are
Laplace components of rank 2k with noise, in a .npy of float32 (sparse: a CSR .npz). What is compared is run in turn, so
that a drift of the machine hits all alike. Peers: scikit-learn's PCA, IncrementalPCA, TruncatedSVD and FastICA, and
picard. The numbers go to docs/results/growth.json (some 20 minutes on two free cores).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from stored import keep

LIMIT = 60
"""Seconds after which a process is stopped."""


@dataclass(frozen=True)
class Size:
    """One row of the table."""

    n: int
    p: int
    k: int
    density: float = 1.0


AXES = {
    "rows": [*(Size(10**e, 64, 10) for e in (3, 4, 5, 6, 7)), Size(10**8, 8, 4)],
    "features": [Size(2000, p, 10) for p in (10, 100, 1000, 4000)]
    + [Size(300, 50_000, 10), Size(100, 1_000_000, 10)],
    "components": [Size(100_000, 512, k) for k in (2, 8, 32, 64, 256)],
    "sparse": [Size(100_000, 10_000, 20, 1e-3), Size(1_000_000, 10_000, 20, 1e-3)],
}
OURS = {
    "pca_svd": ("model=pca_svd",),
    "moments": ("solver=moments",),
    "newton": ("solver=newton", "a=4"),
}
PEERS = {
    "PCA": "from sklearn.decomposition import PCA as M; M({k}).fit(X)",
    "IncrementalPCA": "from sklearn.decomposition import IncrementalPCA as M; M({k}).fit(X)",
    "TruncatedSVD": "from sklearn.decomposition import TruncatedSVD as M; M({k}).fit(X)",
    "FastICA": "from sklearn.decomposition import FastICA as M; M({k}, whiten='unit-variance', random_state=0).fit(X)",
    "picard": "from picard import Picard as M; M({k}, random_state=0).fit(X)",
}
SPARSE_PEERS = ("PCA", "TruncatedSVD")


def write_data(size: Size, folder: Path) -> Path:
    """Write the rows of a size; return the file."""
    random = np.random.default_rng(0)
    if size.density < 1:
        from scipy import sparse

        path = folder / "x.npz"
        shape = (size.n, size.p)
        rows = sparse.random_array(shape, density=size.density, format="csr", dtype=np.float32, rng=random)
        sparse.save_npz(path, rows, compressed=False)
        return path
    rank, path = min(2 * size.k, size.p), folder / "x.npy"
    out = np.lib.format.open_memmap(path, "w+", np.float32, (size.n, size.p))
    axes = np.linalg.qr(random.standard_normal((size.p, rank)))[0].astype(np.float32)
    scale = (3 * 0.9 ** np.arange(rank)).astype(np.float32)
    for first in range(0, size.n, step := max(1, 20_000_000 // size.p)):
        count = min(step, size.n - first)
        noise = random.standard_normal((count, size.p), np.float32)
        out[first : first + count] = (
            random.laplace(size=(count, rank)).astype(np.float32) * scale @ axes.T + 0.05 * noise
        )
    out.flush()
    return path


def commands(size: Size, data: Path) -> dict[str, list[str]]:
    """Return the process of every method."""
    own = [sys.executable, "-m", "sigmapca_cli", "train", "data=array", f"data.path={data}", f"k={size.k}"]
    found = {name: [*own, *words, "if_exists=new"] for name, words in OURS.items()}
    read = f"import numpy as np; X = np.load({str(data)!r})"
    if size.density < 1:
        read = f"from scipy import sparse; X = sparse.load_npz({str(data)!r})"
    for name, text in PEERS.items():
        if size.density == 1 or name in SPARSE_PEERS:
            text = (
                text.replace("M({k})", "M({k}, svd_solver='arpack')")
                if size.density < 1 and name == "PCA"
                else text
            )
            found[name] = [sys.executable, "-c", f"{read}; {text.format(k=size.k)}"]
    return found


def measured(command: list[str], folder: Path) -> dict[str, float] | str:
    """Return seconds and the largest memory in MB of a process, or in a word why there are none."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        if time.perf_counter() - began > LIMIT:
            process.kill()
            process.wait()
            return f"> {LIMIT} s"
        time.sleep(0.01)
    if status:
        return "failed"
    return {"seconds": round(time.perf_counter() - began, 2), "MB": round(usage.ru_maxrss / 1024)}


def table(sizes: list[Size]) -> Iterator[dict[str, Any]]:
    """Yield one row per size."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            # In a process of its own: a child's largest memory begins with that of the process that starts it.
            with ProcessPoolExecutor(1, get_context("spawn")) as writer:
                data = writer.submit(write_data, size, folder).result()
            cells = {name: measured(command, folder) for name, command in commands(size, data).items()}
        yield {"size": [size.n, size.p, size.k], "cells": cells}


def cell(found: dict[str, float] | str) -> str:
    """Return a cell as the page shows it."""
    return found if isinstance(found, str) else f"{found['seconds']:.1f} s, {found['MB']:,.0f} MB"


def main() -> None:
    """Measure what is named, or everything."""
    for axis in sys.argv[1:] or AXES:
        rows = []
        for row in table(AXES[axis]):
            rows.append(row)
            print(row["size"], {name: cell(found) for name, found in row["cells"].items()}, flush=True)
        names = list(rows[0]["cells"])
        body = [
            [" × ".join(f"{value:,}" for value in row["size"]), *(cell(row["cells"][name]) for name in names)]
            for row in rows
        ]
        keep("growth", **{axis: {"head": ["n × p × k", *names], "rows": body, "numbers": rows}})


if __name__ == "__main__":
    main()
