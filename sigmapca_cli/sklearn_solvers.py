"""The solvers of `sklearn.SigmaPCA`: from centred rows and their principal axes to orthonormal filters."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.owners import in_words, owned_components
from sigmapca_cli.sources.statistics import rank_of


class Model:
    """What a solver reads of the estimator, and what it sets."""

    lam: float
    a: float | str
    nonlinearity: str
    derivative: str
    max_iter: int
    tol: float
    random_state: Any

    a_: np.ndarray
    n_iter_: int
    converged_: bool


def leading(centred: np.ndarray, k: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading k principal axes (p, k), and all variances; k None for those that have variance.

    Raise ValueError if there is no variance, or less than k axes of it.
    """
    n, p = centred.shape
    if p <= n:
        values, vectors = np.linalg.eigh(centred.T @ centred / n)
        values, vectors = values[::-1], vectors[:, ::-1]
    else:
        _, s, vt = np.linalg.svd(centred, full_matrices=False)
        values, vectors = s**2 / n, vt.T
    rank = rank_of(values)
    if rank == 0:
        raise ValueError("all rows are equal: there is no variance to find components of")
    if k is not None and k > rank:
        raise ValueError(f"n_components={k} is more than the numerical rank {rank} of the data")
    return vectors[:, : k or rank], values


def leading_of_covariance(C: np.ndarray, k: int | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return as `leading` from the covariance (p, p) of n rows."""
    values, vectors = np.linalg.eigh(C)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = min(rank_of(values), n)
    if rank == 0:
        raise ValueError("all rows are equal: there is no variance to find components of")
    if k is not None and k > rank:
        raise ValueError(f"n_components={k} is more than the numerical rank {rank} of the data")
    return vectors[:, : k or rank], values


def turned_to(P: np.ndarray, W: np.ndarray | None) -> np.ndarray | None:
    """Return the rotation R (k, k) for which P R is nearest to filters W (p, k) of before; None without such."""
    if W is None or W.shape != P.shape:
        return None
    U, _, Vt = np.linalg.svd(P.T @ W)
    return np.asarray(U @ Vt)


def warn_of_owners(centred: np.ndarray, P: np.ndarray, values: np.ndarray) -> None:
    """Warn if a few rows hold most of a principal component."""
    n = len(centred)

    def project(axes: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, n, 8192):
            yield centred[start : start + 8192].astype(np.float32) @ axes

    if owned := owned_components(project, P, values[: P.shape[1]], n, float(values.sum())):
        warnings.warn(in_words(owned, "row {}".format).split(", or add")[0], UserWarning, stacklevel=3)


def newton(model: Model, centred: Any, P: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return W = P R by Newton steps on the rotation group, from a rotation (k, k) or from R = I."""
    from sigmapca_cli.solvers.newton import solve

    if P.shape[1] == 1:
        # One axis has nothing to turn against: it is the principal one, whatever a.
        model.n_iter_, model.converged_, model.a_ = 1, True, np.array([one_a(model, centred @ P)])
        return P
    result = solve(
        centred @ P,
        a=model.a,
        nonlinearity=model.nonlinearity,
        derivative=model.derivative,
        start=start,
        tol=model.tol,
        max_iter=model.max_iter,
    )
    model.n_iter_, model.converged_, model.a_ = result.iterations, result.converged, result.a
    return P @ result.R


def moments(model: Model, centred: Any, P: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return W = P R at the maximum of F over rotations R, by a climb from a rotation (k, k) or from R = I."""
    from sigmapca_cli.solvers.maximum import maximise

    k = P.shape[1]
    model.n_iter_, model.converged_, model.a_ = 1, True, np.full(k, np.inf)
    if k == 1:
        return P
    result = maximise(centred @ P, model.lam, start=start, tol=model.tol, max_iter=model.max_iter)
    model.n_iter_, model.converged_ = result.iterations, result.converged
    return P @ result.R


def one_a(model: Model, y: np.ndarray) -> float:
    """Return the a of a single component: the one given, or by the sign of its kurtosis."""
    from sigmapca_cli.evaluation.metrics import kurtosis

    if model.a == "auto":
        return 3.0 if kurtosis(y)[0] > 0 else 0.8
    if isinstance(model.a, str) or not model.a > 0:
        raise InputError(f"a={model.a!r}: must be a positive number, or auto")
    return float(model.a)


def sgd(model: Model, centred: Any, P: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return W by stochastic training on tangent gradients, from P R with a rotation (k, k), or from P."""
    from sigmapca_cli.config import Config
    from sigmapca_cli.methods.config import NonlinearityConfig
    from sigmapca_cli.processes import pick_threads
    from sigmapca_cli.runner import plan, stochastic
    from sigmapca_cli.sources.memory import MemorySource
    from sigmapca_cli.sources.options import Standardisation
    from sigmapca_cli.training import loop
    from sigmapca_cli.training.arrays import as_numpy, made_like

    n, k = len(centred), P.shape[1]
    cfg = Config(
        a=model.a,
        k=k,
        seed=seed_of(model.random_state),
        epochs=model.max_iter,
        batch_size=min(128, n),
        rescale=True,
        device="cpu",
        nonlinearity=NonlinearityConfig(model.nonlinearity, model.a, derivative=model.derivative),
    )
    source: Any = getattr(centred, "source", None)  # `sklearn_products` has one already
    if source is None:
        source = MemorySource("array", centred, Standardisation("none"))
    source.in_memory = False  # somebody else's process is not to be forked
    method = plan.method_of(cfg)
    trainer = stochastic.make_trainer(cfg, method, source, "cpu")
    if start is not None:
        trainer.state["W"] = made_like(trainer.state["W"], (P @ start).astype(cfg.dtype))
    with computing_on(pick_threads(None, cfg.batch_size * source.p * k), plan.needs_torch(cfg)):
        loop.train([trainer])
        model.converged_ = stochastic.convergence_of(trainer).converged(cfg.tol)
    model.n_iter_ = model.max_iter
    learned = trainer.state.get("a")
    model.a_ = np.full(k, float(model.a)) if learned is None else as_numpy(learned).astype(np.float64)
    # Training keeps the columns only nearly orthogonal; the nearest orthonormal W makes the inverse exact.
    U, _, Vt = np.linalg.svd(as_numpy(trainer.state["W"]).astype(np.float64), full_matrices=False)
    return U @ Vt


@contextlib.contextmanager
def computing_on(threads: int, by_torch: bool) -> Iterator[None]:
    """Let products inside the block take so many threads, those of torch too if it computes."""
    from sigmapca_cli.processes import blas

    with blas(threads), contextlib.ExitStack() as stack:
        if by_torch:
            from sigmapca_cli.training.device import torch_threads

            stack.enter_context(torch_threads(threads))
        yield


def seed_of(random_state: Any) -> int:
    """Return a seed from what scikit-learn calls a random state: an int itself, else a number drawn from it."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


SOLVERS = {"newton": newton, "moments": moments, "sgd": sgd}
