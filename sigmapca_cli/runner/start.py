"""Where a run starts: random orthogonal columns, the leading eigenvectors, the answer of a solver, or a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sigmapca_cli.data.source import Source
from sigmapca_cli.linalg.rotations import random_orthonormal
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.solvers.main_loss.automatic import Start as ChosenA

Answer = TypeVar("Answer")


def from_file(name: str, p: int, k: int) -> np.ndarray:
    """Read filters (p, k) of a run, or of a .npy file. Raise InputError for another shape or values not finite."""
    if Path(name).suffix == ".npy":
        try:
            W = np.load(name, allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise InputError(f"init_file={name}: not a readable .npy file ({problem})") from None
    else:
        from sigmapca_cli.storage.find import resolve
        from sigmapca_cli.storage.read import StoredRun

        W = StoredRun.open(resolve(name)).filters
    W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != p or W.shape[1] < k:
        raise InputError(f"init_file={name}: filters of shape {W.shape}, needed ({p}, {k})")
    if not np.isfinite(W).all():
        raise InputError(f"init_file={name}: the filters hold NaN or infinite values")
    return W[:, :k]


def initial_filters(cfg: Config, source: Source) -> np.ndarray:
    """Return the filters W (p, k) in float64 that stochastic training starts from, as `init` asks."""
    if (found := start_of_solver(cfg, source)) is not None:
        return found
    if cfg.init == "pca":
        return source.leading_axes(cfg.k).up_to(cfg.k)
    return random_orthonormal(source.p, cfg.k, cfg.seed)


def kept(find: Callable[[Config, Source], Answer]) -> Callable[[Config, Source], Answer]:
    """Keep the last answer that was found: other runs of a sweep on the same rows ask for it again.

    The hash of the data does not say whether rows are in time, or whose they are: their settings count too.
    """
    last: dict[Any, Answer] = {}

    @wraps(find)
    def asked(cfg: Config, source: Source) -> Answer:
        groups = cfg.data, cfg.solver, cfg.nonlinearity
        key = source.hash, cfg.rescale, cfg.k, cfg.threads, *map(repr, groups)
        if key not in last:
            found = find(cfg, source)
            last.clear()
            last[key] = found
        return last[key]

    return asked


@kept
def answer_and_a(cfg: Config, source: Source) -> ChosenA:
    """Return the filters (p, k) of solver=independence, and the a of each that holds it best there."""
    from sigmapca_cli.solvers.main_loss.automatic import start_and_a
    from sigmapca_cli.solvers.rows.projection import project

    P, Y, _, _ = project(source, cfg.k, cfg.solver.clip)
    patches = source.patch_shape is not None
    at = start_and_a(Y, cfg.nonlinearity.derivative, patches=patches, threads=cfg.threads)
    return replace(at, R=P @ at.R)


def start_of_solver(cfg: Config, source: Source) -> np.ndarray | None:
    """Return the filters (p, k) of a file or of another solver's answer; None where `init` asks for neither."""
    if cfg.init == "file":
        return from_file(str(cfg.init_file), source.p, cfg.k)
    return ANSWERS[cfg.init](cfg, source) if cfg.init in ANSWERS else None


@kept
def answer_of_moments(cfg: Config, source: Source) -> np.ndarray:
    """Return the filters (p, k) of solver=moments, found from the principal axes."""
    from sigmapca_cli.solvers.fourth_moments.fit import moments_fit

    own = cfg.solver
    solution, _ = moments_fit(source, cfg.k, own.lam, starts=own.starts, threads=cfg.threads, clip=own.clip)
    return solution.W


@kept
def answer_of_independence(cfg: Config, source: Source) -> np.ndarray:
    """Return the filters (p, k) of solver=independence, found from its own start."""
    from sigmapca_cli.solvers.independence.fit import independence_fit

    own = cfg.solver
    solution, _ = independence_fit(source, cfg.k, own.tau, threads=cfg.threads, clip=own.clip)
    return solution.W


ANSWERS = {"moments": answer_of_moments, "independence": answer_of_independence}
"""The solvers whose answer is a start, by the word of `init`."""
