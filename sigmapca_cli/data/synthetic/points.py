"""data=points: a cloud of independent 2-D points, rotated; the smallest problem in which linear PCA fails."""

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource, known_source
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.system.untrusted_files import need_memory

Array = NDArray[np.float64]


def cloud(distribution: str, n: int, seed: int) -> Array:
    """Return S (n, 2): uniform on ±√2 (variance 2/3), or Laplace with scale 1/√2 (variance 1)."""
    generator = np.random.RandomState(seed)
    if distribution == "uniform":
        return generator.uniform(-np.sqrt(2), np.sqrt(2), size=(n, 2))
    return generator.laplace(scale=1 / np.sqrt(2), size=(n, 2))


def sample(cfg: DataConfig) -> tuple[Array, Truth]:
    """Return X = S Rᵀ (n, 2), R the rotation by data.angle degrees; the columns of R are the true filters."""
    angle = np.deg2rad(cfg.angle)
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    n = 1000 if cfg.n is None else cfg.n
    need_memory(64.0 * n, "data=points", "lower data.n")
    S = cloud(cfg.distribution, n, cfg.seed)
    return S @ R.T, Truth("filters", filters=R, sources=S, mixing=R)


def build(cfg: DataConfig) -> MemorySource:
    return known_source("points", *sample(cfg), cfg)
