"""data=planted: x = s Eᵀ + noise, with E known; groups of equal variance that linear PCA cannot separate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource, known_source
from sigmapca_cli.data.truth import Truth
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import need_memory

# Standard deviation of the first group, and the factor from each group to the next.
FIRST_STD, DECAY = 3.0, 0.7


def unit_sources(kind: str, n: int, k: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return (n, k) independent samples of variance 1: Laplace, uniform, or the two alternately ("mixed")."""
    laplace: NDArray[np.float64] = generator.laplace(scale=1 / np.sqrt(2), size=(n, k))
    if kind == "laplace":
        return laplace
    uniform: NDArray[np.float64] = generator.uniform(-np.sqrt(3), np.sqrt(3), size=(n, k))
    if kind == "uniform":
        return uniform
    uniform[:, ::2] = laplace[:, ::2]
    return uniform


def standard_deviations(k: int, group: int) -> NDArray[Any]:
    """Return 3 · 0.7^(i // group), (k,): `group` neighbouring sources have the same standard deviation."""
    return FIRST_STD * DECAY ** (np.arange(k) // group)


def sample(cfg: DataConfig) -> tuple[NDArray[np.float32], Truth]:
    """Return X (n, p) float32 and its truth: filters E (p, k) orthonormal, sources s (n, k), mixing E."""
    if cfg.k > cfg.p:
        raise InputError(f"data.k={cfg.k} sources do not fit into data.p={cfg.p} dimensions: lower data.k")
    n = 100_000 if cfg.n is None else cfg.n
    need_memory(8.0 * n * (cfg.p + 2 * cfg.k) + 8.0 * cfg.p * cfg.k, "data=planted", "lower data.n or data.p")
    generator = np.random.default_rng(cfg.seed)
    E, _ = np.linalg.qr(generator.standard_normal((cfg.p, cfg.k)))
    s = unit_sources(cfg.sources, n, cfg.k, generator) * standard_deviations(cfg.k, cfg.group)
    X = (s @ E.T).astype(np.float32)
    if cfg.noise:
        X += np.float32(cfg.noise) * generator.standard_normal((n, cfg.p), dtype=np.float32)
    return X, Truth("filters", filters=E, sources=s, mixing=E)


def build(cfg: DataConfig) -> MemorySource:
    return known_source("planted", *sample(cfg), cfg)
