"""Where W starts: random orthogonal columns, the leading eigenvectors, the answer of solver=moments, or a file."""

from pathlib import Path

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.base import Source


def orthogonal(p: int, k: int, seed: int) -> np.ndarray:
    """Uniformly random orthonormal columns, (p, k) float64: Q of a Gaussian matrix with the signs of R's diagonal."""
    q, r = np.linalg.qr(np.random.default_rng((seed, 0x57A27)).standard_normal((p, k)))
    return q * np.sign(np.diag(r))


def from_file(name: str, p: int, k: int) -> np.ndarray:
    """Filters (p, k) of a run, or of a .npy file."""
    if Path(name).suffix == ".npy":
        try:
            W = np.load(name, allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise InputError(f"init_file={name}: not a readable .npy file ({problem})") from None
    else:
        from sigmapca_cli.runs.find import resolve
        from sigmapca_cli.runs.read import Run

        W = Run.open(resolve(name)).filters
    W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != p or W.shape[1] < k:
        raise InputError(f"init_file={name}: filters of shape {W.shape}, needed ({p}, {k})")
    if not np.isfinite(W).all():
        raise InputError(f"init_file={name}: the filters hold NaN or infinite values")
    return W[:, :k]


def initial_filters(cfg, source: Source) -> np.ndarray:
    """W (p, k) in float64, as `init` asks."""
    if cfg.init == "file":
        return from_file(cfg.init_file, source.p, cfg.k)
    if cfg.init == "moments":
        from sigmapca_cli.solvers.moments_fit import start_filters

        return start_filters(cfg, source)
    if cfg.init == "pca":
        return source.principal_axes()[1][:, : cfg.k]
    return orthogonal(source.p, cfg.k, cfg.seed)
