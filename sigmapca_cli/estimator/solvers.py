"""The solvers of `SigmaPCA`: from centred rows and their principal axes to orthonormal filters."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sigmapca_cli.estimator.settings import Settings
from sigmapca_cli.linalg.rotations import nearest_orthonormal
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.data.row_order import RowOrder
    from sigmapca_cli.solvers.main_loss.automatic import Start


@dataclass
class Found:
    """Orthonormal filters W (p, k) and how they were found: iterations, and a (k,) of each component.

    Of solver="independence" also τ, the negentropies (k,), the pairs (m, 2) of components that are not independent, and
    whether rows were taken as samples in time.
    """

    W: np.ndarray
    iterations: int
    converged: bool
    a: np.ndarray
    tau: float | None = None
    negentropy: np.ndarray | None = None
    pairs: np.ndarray | None = None
    ordered: bool = False


def turned_to(P: np.ndarray, W: np.ndarray | None) -> np.ndarray | None:
    """Return the rotation R (k, k) for which P R is nearest to filters W (p, k) of before; None without such."""
    if W is None or W.shape != P.shape:
        return None
    return nearest_orthonormal(P.T @ W)


def independence(settings: Settings, rows: Any, P: np.ndarray, start: np.ndarray | None) -> Found:
    """Return W = P R of the smallest total correlation, R from a rotation (k, k) or R = I; rows may have weights."""
    from sigmapca_cli.solvers.independence.fit import answered
    from sigmapca_cli.solvers.independence.spectra import are_long_enough, spectra_of

    k, Y = P.shape[1], np.ascontiguousarray(rows @ P)
    copies, weights = rows.source.copies if rows.in_sequence else None, rows.weights
    if copies is not None:
        first, weights = copies.distinct()
        Y = Y[first]
    order = order_of_rows(settings, rows, Y)
    weights = None if order.ordered else weights
    in_time = order.in_time and k > 1 and (settings.ordered or are_long_enough((), len(Y)))
    answer = answered(
        Y,
        settings.tau,
        order.ordered,
        start=start,
        spectra=spectra_of(Y) if in_time else None,
        weights=weights,
        tol=settings.tol,
        max_iter=settings.max_iter,
    )
    found = answer.result
    pairs = answer.test.pairs() if k > 1 else []
    return Found(
        P @ found.R,
        found.iterations,
        found.converged,
        np.full(k, np.inf),
        found.tau,
        found.negentropy,
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        order.in_time,
    )


def order_of_rows(settings: Settings, rows: Any, Y: np.ndarray) -> RowOrder:
    """Return whether rows with components Y (n, k) have an order. Raise InputError where they cannot have one."""
    from sigmapca_cli.data.row_order import RowOrder, order_of

    if not rows.in_sequence and settings.ordered:
        raise InputError(
            "ordered=True: rows with weights, and those of partial_fit, have no order; leave it out"
        )
    if settings.ordered is not None:
        return RowOrder(bool(settings.ordered), "given")
    return order_of(Y) if rows.in_sequence else RowOrder(False, "given")


def newton(settings: Settings, rows: Any, P: np.ndarray, start: np.ndarray | None) -> Found:
    """Return W = P R by Newton steps on the rotation group, from a rotation (k, k) or from R = I."""
    from sigmapca_cli.solvers.main_loss.automatic import start_and_a
    from sigmapca_cli.solvers.newton.solve import solve

    if P.shape[1] == 1:
        # One axis has nothing to turn against: it is the principal one, whatever a.
        return Found(P, 1, True, np.array([one_a(settings, rows @ P, rows.weights)]))
    at: Start | None = None
    Y, a = rows @ P, settings.a  # type: np.ndarray, float | str | np.ndarray
    if isinstance(a, str) and settings.nonlinearity == "scaled_tanh":
        at = start_and_a(Y, settings.derivative, weights=rows.weights)
        a, start = at.a, at.R if start is None else start
    result = solve(
        Y,
        a=a,
        nonlinearity=settings.nonlinearity,
        derivative=settings.derivative,
        start=start,
        tol=settings.tol,
        max_iter=settings.max_iter,
        weights=rows.weights,
    )
    if at is not None and (words := at.words(result.R)):
        warnings.warn(words, UserWarning, stacklevel=5)
    return Found(P @ result.R, result.iterations, result.converged, result.a)


def moments(settings: Settings, rows: Any, P: np.ndarray, start: np.ndarray | None) -> Found:
    """Return W = P R at the maximum of F over rotations R, by a climb from a rotation (k, k) or from R = I."""
    from sigmapca_cli.solvers.fourth_moments.maximum import maximise

    a = np.full(P.shape[1], np.inf)
    if P.shape[1] == 1:
        return Found(P, 1, True, a)
    result = maximise(
        rows @ P,
        settings.lam,
        start=start,
        tol=settings.tol,
        max_iter=settings.max_iter,
        weights=rows.weights,
    )
    return Found(P @ result.R, result.iterations, result.converged, a)


def one_a(settings: Settings, y: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the a of a single centred component (n, 1): the one given, or by the sign of its kurtosis."""
    if settings.a == "auto":
        square = np.square(y[:, 0])
        second, fourth = (float(np.average(m, weights=weights)) for m in (square, square**2))
        return 3.0 if fourth > 3 * second**2 else 0.8
    if isinstance(settings.a, str) or not settings.a > 0:
        raise InputError(f"a={settings.a!r}: must be a positive number, or auto")
    return float(settings.a)


def sgd(settings: Settings, rows: Any, P: np.ndarray, start: np.ndarray | None) -> Found:
    """Return W by stochastic training on tangent gradients, from P R with a rotation (k, k), or from P.

    Rows with weights are drawn in proportion to them.
    """
    from sigmapca_cli.methods.config import NonlinearityConfig
    from sigmapca_cli.runner import plan, stochastic
    from sigmapca_cli.settings.schema import Config, SolverConfig
    from sigmapca_cli.system.processes import pick_threads
    from sigmapca_cli.training import loop, stopping
    from sigmapca_cli.training.arrays import as_numpy, made_like

    n, k = len(rows), P.shape[1]
    cfg = Config(
        a=settings.a,
        k=k,
        seed=seed_of(settings.random_state),
        epochs=settings.max_iter,
        batch_size=min(128, n),
        rescale=True,
        device="cpu",
        nonlinearity=NonlinearityConfig(settings.nonlinearity, settings.a, derivative=settings.derivative),
        solver=SolverConfig(a_from="independence"),
    )
    source = rows.source if rows.weights is None else rows.source.drawn()
    method = plan.method_of(cfg)
    trainer = stochastic.make_trainer(cfg, method, source, "cpu")
    if start is not None:
        trainer.state["W"] = made_like(trainer.state["W"], (P @ start).astype(cfg.dtype))
    with computing_on(pick_threads(cfg.batch_size * source.p * k), plan.needs_torch(cfg)):
        loop.train([trainer])
        converged = stopping.convergence_of(trainer).converged(cfg.tol)
    learned = trainer.state.get("a")
    a = np.full(k, float(settings.a)) if learned is None else as_numpy(learned).astype(np.float64)
    # Training keeps the columns only nearly orthogonal; the nearest orthonormal W makes the inverse exact.
    W = nearest_orthonormal(as_numpy(trainer.state["W"]).astype(np.float64))
    return Found(W, settings.max_iter, converged, a)


@contextlib.contextmanager
def computing_on(threads: int, by_torch: bool) -> Iterator[None]:
    """Let products inside the block take so many threads, those of torch too if it computes."""
    from sigmapca_cli.system.processes import blas

    with blas(threads), contextlib.ExitStack() as stack:
        if by_torch:
            from sigmapca_cli.training.device import torch_set

            stack.enter_context(torch_set(threads))
        yield


def seed_of(random_state: Any) -> int:
    """Return a seed from what scikit-learn calls a random state: an int itself, else a number drawn from it."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


FITS = {"independence": independence, "newton": newton, "moments": moments, "sgd": sgd}
