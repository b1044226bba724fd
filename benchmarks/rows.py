"""The cost of a pass over many rows, against reading the file and against the bare product of the same rows.

    python benchmarks/rows.py [rows] [features]

Writes rows of float32 (20,000,000 × 64 by default, 5 GB) to a temporary folder. Then, three times in turn: reads the
file into one buffer (from the cache of the system if it fits); makes the products xᵀx of its blocks in float32 and in
float64, without reading; makes the one pass of sigmapca; and runs whole commands. Prints CPU seconds (user and system,
all threads) and seconds on the clock: if other programs use the cores, only the former can be compared.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import SIGMAPCA

BLOCK = 16_384
REPEATS = 3


def write_rows(path: Path, n: int, p: int) -> None:
    """Write n rows of 12 heavy-tailed sources in p features, with noise and a mean."""
    random = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
    axes = (np.linalg.qr(random.standard_normal((p, 12)))[0] * np.linspace(3, 1, 12)).astype("f4")
    for start in range(0, n, 200_000):
        count = min(200_000, n - start)
        sources = random.standard_exponential((count, 12), np.float32) - 1
        out[start : start + count] = (
            sources @ axes.T + 0.5 * random.standard_normal((count, p), np.float32) + 2
        )
    out.flush()


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def reading(path: Path, p: int) -> None:
    """Read the file into one buffer."""
    buffer = np.empty((BLOCK, p), np.float32)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer.data):
            pass


def products(n: int, p: int, dtype: str) -> Callable[[], None]:
    """Return a function that makes xᵀx as often as n rows need it, on one thread."""
    from threadpoolctl import threadpool_limits

    x = np.random.default_rng(0).standard_normal((BLOCK, p)).astype(dtype)

    def run() -> None:
        with threadpool_limits(1):
            for _ in range(n // BLOCK):
                x.T @ x

    return run


def one_pass(path: Path) -> None:
    """Make the source: mean, covariance, check of every value, hash, and the rows that are kept."""
    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    build(DataConfig(name="array", path=str(path)))


def command(path: Path, folder: str, *words: str) -> Callable[[], None]:
    """Return a function that trains in a process of its own."""
    given = ["data=array", f"data.path={path}", "k=10", f"outputs={folder}", "if_exists=new", *words]

    def run() -> None:
        subprocess.run([*SIGMAPCA, "train", *given], check=True, capture_output=True)

    return run


def main(n: int = 20_000_000, p: int = 64) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, n, p)
        ways: dict[str, Callable[[], None]] = {
            "read the file": lambda: reading(path, p),
            "products in float32": products(n, p, "f4"),
            "products in float64": products(n, p, "f8"),
            "one pass of sigmapca": lambda: one_pass(path),
            "train model=pca_svd": command(path, folder, "model=pca_svd"),
            "train solver=moments": command(path, folder, "solver=moments"),
            "train solver=newton a=4": command(path, folder, "solver=newton", "a=4"),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, way in ways.items():
                cpu, clock = spent(), time.perf_counter()
                way()
                found[name].append((spent() - cpu, time.perf_counter() - clock))
    print(
        f"{n} x {p} float32, {4e-9 * n * p:.1f} GB; load {os.getloadavg()[0]:.1f}; CPU s, clock s (medians)"
    )
    for name, pairs in found.items():
        print(
            f"{name:26s} {statistics.median(a for a, _ in pairs):7.2f} {statistics.median(b for _, b in pairs):7.2f}"
        )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
