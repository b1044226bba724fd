"""A sweep of small runs, written as training writes them, without the training."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from run_data import log_block

from sigmapca_cli.storage.write import RunWriter

SHAPE = (5, 5, 3)

WriteRun = Callable[..., Path]


def configuration(a: float, seed: int, k: int) -> dict:
    """As much of a configuration as tells runs apart."""
    return {"a": a, "seed": seed, "k": k, "tol": 0.02, "nonlinearity": {"a": a}, "model": {"name": "nlpca"}}


def write(
    folder: Path,
    a: float,
    seed: int,
    shape: tuple[int, int, int] | None = SHAPE,
    k: int = 4,
    overrides: tuple[str, ...] = (),
    **attrs,
) -> Path:
    """One finished run of random filters, of a given by a and seed."""
    rng = np.random.default_rng([int(10 * a), seed])
    p = 25 if shape is None else int(np.prod(shape))
    W = rng.normal(size=(p, k))
    W /= np.linalg.norm(W, axis=0)
    sigma = np.sort(rng.uniform(1, 3, size=k))[::-1]
    folder.mkdir(parents=True)
    config = yaml.safe_dump(configuration(a, seed, k))
    writer = RunWriter(folder, model="nlpca", config_yaml=config, seed=seed, overrides=overrides)
    steps = np.arange(10, 1010, 10)
    log_block(writer, steps, {"loss": a / steps + 1, "mcc": 1 - 1 / steps})
    writer.finish(
        {"filters": W, "sigma": sigma, "encoder": W / sigma, "decoder": (W * sigma).T},
        patch_shape=shape,
        evaluation={
            "mcc": 0.9 + a / 100,
            "mcc_chance": 0.2,
            "explained_variance": 0.5,
            "pca_sigma": np.full(k, 2.0),
        },
        attrs={"a": a, "k": k, "p": p, "n": 1000, "data": "planted", "converged": True, **attrs},
    )
    return folder


def write_failed(folder: Path, error: str) -> Path:
    """A run that ended before it had a solution."""
    folder.mkdir(parents=True)
    config = yaml.safe_dump(configuration(16.0, 0, 4))
    writer = RunWriter(folder, model="nlpca", config_yaml=config)
    writer.finish(status="failed", attrs={"error": error})
    return folder


@pytest.fixture
def write_run() -> WriteRun:
    """Writes a finished run into a folder."""
    return write


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a in 1, 2, 10 for seeds 0 and 1, and one run that failed."""
    folder = tmp_path_factory.mktemp("sweep")
    for number, (a, seed) in enumerate([(a, seed) for a in (10.0, 1.0, 2.0) for seed in (0, 1)]):
        write(folder / str(number), a, seed)
    write_failed(folder / "6", "RunFailed: loss is <script>alert(1)</script> & nan")
    return folder
