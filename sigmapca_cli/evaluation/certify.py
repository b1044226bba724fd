"""The certificate of a stored run, computed with the equation and the numbers that it was trained with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.row_order import RowOrder, pieces_of, row_order
from sigmapca_cli.data.subsample import evenly_spaced
from sigmapca_cli.evaluation.certificate import (
    ARBITRARY,
    CERTIFICATE_LEVEL,
    IDENTIFIED,
    Certificate,
)
from sigmapca_cli.evaluation.identifiability import certify
from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.evaluation.pairs import Blocks, accumulate
from sigmapca_cli.settings.ways import Way, way_stored
from sigmapca_cli.solvers.rows.stretches import error_of
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.row_shards import gathered, own_of, shared

ELSEWHERE = "compare seeds instead: sigmapca stability"
ROTATION_FREE = {"encoder", "unit_norm"}
"""Regularisers that a rotation of orthonormal filters does not change."""
NO_AXES = {"linear_ae", "subspace"}
"""Linear methods that find a subspace, but no axes in it."""


def certify_run(run: Any, source: Any, rows: int = 100_000, level: float = CERTIFICATE_LEVEL) -> Certificate:
    """Return the certificate of a `StoredRun` on its data, from at most `rows` evenly spaced rows.

    The nonlinearity, its a and its c are those of the training: one a per component if the run stored them, and
    a·σ/std(y) if σ was trained too. Linear PCA is judged by its variances alone, a run with solver=moments by the
    curvature of F (`fourth`), one with solver=independence by the errors of C (`independence`). Linear ICA has a
    certificate with solver=independence only: its components are white, and the errors are those of the rotation alone.
    Rows with filled values are left out where the others are enough, but for spectra, which need every row.
    Raise InputError if the curvature of the loss is not known here; the message names another command.
    """
    model = run.config.get("model", {})
    if problem := refusal(run, model):
        raise InputError(problem)
    in_time = "bands" in run.evaluation  # spectra need every row of a stretch
    chosen = np.arange(min(source.n, rows)) if in_time else evenly_spaced(source.n, rows)
    index = own_of(chosen, source.n)
    W = np.asarray(run.encoder if run.rotation is not None else run.filters, dtype=np.float64)
    Y = np.concatenate(gathered(np.concatenate(list(source.project(W, index)))))
    numbers, weights = np.concatenate(gathered(index)), None
    order = row_order(source, Y, numbers)
    known = None if in_time else source.complete(numbers)
    if known is not None:
        Y, numbers = Y[known], numbers[known]
    if source.copies is not None:
        first, weights = source.copies.distinct(numbers)
        Y, numbers, weights = Y[first], numbers[first], None if order.ordered else weights
    cut = cut_by(source, Y, weights) if run.rotation is None else None
    if (
        run.rotation is not None
    ):  # white on the rows of the training; their variances on others say nothing of axes
        Y = Y / np.maximum(Y.std(0), np.finfo(float).tiny)
    with shared(None):  # every rank has all of these rows
        found = certificate_of(run, model, Y, level, order, pieces_of(source, numbers), weights)
    found = replace(as_trained(found, run, source), cut=cut, converged=has_converged(run))
    if known is not None:
        return replace(found, filled=int((~known).sum()))
    return replace(found, with_filled=source.incomplete is not None and bool(source.incomplete.any()))


def as_trained(found: Certificate, run: Any, source: Any) -> Certificate:
    """Return a certificate on the rows of the training with the dependent pairs that the run stored of all of them."""
    if "dependent_pairs" not in run.evaluation or run.attrs.get("data_hash") != source.hash:
        return found
    pairs = tuple((int(i), int(j)) for i, j in np.reshape(run.evaluation["dependent_pairs"], (-1, 2)))
    return replace(found, dependent=pairs, together=not pairs and bool(run.evaluation["dependence_spread"]))


def cut_by(source: Any, Y: Array, weights: Array | None = None) -> Array:
    """Return which components of Y (n, k) have the variance of the first axis left out, within 3 standard errors.

    weights (n,): of the rows, of mean 1.

    Directions of equal variance span a subspace. If k cuts through it, chance decides which part of it is found.
    """
    k = Y.shape[1]
    values = source.leading_axes(k).values if hasattr(source, "leading_axes") else np.zeros(0)
    if len(values) <= k or values[k] <= 1e-12 * values[0]:
        return np.zeros(k, bool)
    square = np.square(Y - np.average(Y, axis=0, weights=weights))
    variance = np.maximum(np.average(square, axis=0, weights=weights), np.finfo(float).tiny)
    kurtosis = np.average(np.square(square), axis=0, weights=weights) / variance**2 - 1
    n = len(Y) if weights is None else len(Y) ** 2 / np.square(weights).sum()
    # The axis left out is assumed to have the kurtosis of the component.
    error = np.sqrt(2 * np.maximum(kurtosis, 0) / n)
    cut: Array = np.asarray(np.log(variance / values[k]) <= 3 * error)
    return cut


def certificate_of(
    run: Any,
    model: Any,
    Y: Array,
    level: float,
    order: RowOrder,
    pieces: tuple[int, ...],
    weights: Array | None = None,
) -> Certificate:
    """Return the certificate of the components Y (n, k) of a run, for the equation that trained it.

    order: whether the rows have one. pieces: rows at which a new stretch of time begins. weights (n,): of rows without
    an order, of mean 1.
    """
    if is_linear(model):
        return certify_variances(Y, level, order.ordered, weights)
    if way_stored(run.config) is Way.MOMENTS:
        from sigmapca_cli.evaluation.fourth import certify_fourth

        return certify_fourth(Y, float(run.evaluation["lam"]), level, weights, order.ordered)
    if way_stored(run.config) is Way.INDEPENDENCE:
        from sigmapca_cli.evaluation.independence import certify_independence
        from sigmapca_cli.solvers.independence.spectra import spectra_of

        return certify_independence(
            Y,
            float(run.evaluation["tau"]),
            level,
            ordered=order.ordered,
            spectra=spectra_of(Y, pieces) if "bands" in run.evaluation else None,
            pieces=pieces,
            weights=weights,
        )
    setting = run.config.get("nonlinearity", {})
    kind, derivative = str(setting.get("name", "scaled_tanh")), str(setting.get("derivative", "true")).lower()
    c = float(setting["c"]) if kind == "asymmetric" and "c" in setting else None
    scale = scale_of(run, setting, Y)
    return certify(Y, kind, derivative, scale, level, c=c, weights=weights, ordered=order.ordered)


def is_linear(model: Any) -> bool:
    """Return whether the run is linear PCA, whose axes are identified by their variances only."""
    return model.get("family") == "linear_pca" or model.get("name") == "ppca"


def refusal(run: Any, model: Any) -> str | None:
    """Return why there is no certificate for a run, or None if there is one."""
    name = model.get("name", "this model")
    config, way = run.config, way_stored(run.config)
    if (run.rotation is not None or model.get("family") == "linear_ica") and way is not Way.INDEPENDENCE:
        return f"linear ICA has a certificate with solver=independence only: {ELSEWHERE}"
    if name in NO_AXES or model.get("objective") in NO_AXES:
        return (
            f"model={name} finds only a subspace: its axes are always arbitrary, so there is no certificate"
        )
    if is_linear(model):
        return None
    if way in (Way.MOMENTS, Way.INDEPENDENCE):
        return None
    if model.get("objective") != "main":
        return f"there is no certificate for model={name}, only for the main loss: {ELSEWHERE}"
    ordering = config.get("ordering", {}).get("name", "none")
    if ordering != "none":
        return f"there is no certificate for ordering={ordering}, which changes the curvature: {ELSEWHERE}"
    terms = set(config.get("regularisers") or {}) - ROTATION_FREE
    if terms:
        return f"there is no certificate for regularisers={sorted(terms)}, which change the curvature: {ELSEWHERE}"
    constraint = config.get("constraint", {}).get("name", "unit_norm")
    if constraint in ("symmetric", "gram_schmidt") and way is not Way.NEWTON:
        return (
            f"there is no certificate for constraint={constraint}, which changes the equations: {ELSEWHERE}"
        )
    if config.get("sigma", {}).get("name") == "unit" and way is not Way.NEWTON:
        return f"there is no certificate for sigma=unit, the conventional model without σ: {ELSEWHERE}"
    if config.get("nonlinearity", {}).get("c") == "adaptive" and "asymmetric" in str(
        config["nonlinearity"].get("name")
    ):
        return f"there is no certificate for nonlinearity.c=adaptive: h changes with the data: {ELSEWHERE}"
    return None


def scale_of(run: Any, setting: Any, Y: Array) -> Array | float:
    """Return a of each component, in units of its standard deviation: as learned or chosen, else as configured."""
    a = run.evaluation.get("a", setting.get("a", run.config.get("a", 4.0)))
    if isinstance(a, str):
        raise InputError(
            f"the run has a={a} but did not store the a of each component, which a certificate needs: train it again"
        )
    trained = run.evaluation.get("trained_sigma")
    if trained is None:
        return np.asarray(a, np.float64)
    # h(y/σ)σ = aσ·tanh(y/(aσ)): in units of std(y) this is a tanh of scale aσ/std(y).
    return np.asarray(a, np.float64) * np.asarray(trained, np.float64) / np.maximum(Y.std(0), 1e-300)


def certify_variances(
    Y: Array, level: float = CERTIFICATE_LEVEL, ordered: bool = False, weights: Array | None = None
) -> Certificate:
    """Return the certificate of the components Y (n, k) of linear PCA: a pair is identified if its variances differ.

    The curvature of the Rayleigh quotient is (σ_j/σ_i − σ_i/σ_j)². The angle of an axis to its limit is
    ρ_ij·σ_iσ_j/|σ_i² − σ_j²|; its error follows from that of the correlation ρ_ij.
    ordered: whether the rows depend on their neighbours. weights (n,): of the rows, of mean 1.
    """
    blocks = Blocks(Y, 8192, None if weights is None else weights[:, None])
    n, mean, sigma = blocks.location()
    k = len(sigma)
    moments = accumulate(blocks, n, mean, sigma, lambda z, a: (z, np.ones_like(z)), np.ones(k))
    moments = moments.in_time() if ordered else moments
    groups = len(moments.weight)
    s = (moments.z2 - 1) / 2
    ratio = np.log(np.where(sigma > 0, sigma, 1.0))
    difference = np.abs(ratio[:, None] - ratio)
    deviation = error_of(moments.weight, s[:, :, None] - s[:, None, :])
    score = np.divide(difference, deviation, out=np.zeros_like(difference), where=deviation > 0)
    apart = differ_beyond_chance(sigma, score, groups - 1, level)
    safe = np.where(sigma > 0, sigma, 1.0)
    t = safe / safe[:, None]
    gap = np.abs(1 / t - t)
    C = moments.over_all(moments.C)
    correlation = moments.C - C - C * (s[:, :, None] + s[:, None, :])
    spread = error_of(moments.weight, correlation * (1 - np.eye(k)))
    angle = np.divide(spread, gap, out=np.full((k, k), np.inf), where=gap > 0)
    return Certificate(
        curvature=gap**2,
        error=4 * np.sinh(2 * difference) * deviation,
        score=score,
        shape=np.zeros((k, k)),
        shape_error=np.ones((k, k)),
        variance_score=score,
        angle=angle,
        verdict=np.where(apart, IDENTIFIED, ARBITRARY),
        kurtosis=np.where(sigma > 0, moments.fourth - 3, 0.0),
        sigma=sigma,
        n=n,
        threshold=spread_by_chance(2, groups - 1, level),
        level=level,
        linear=True,
    )


def differ_beyond_chance(sigma: Array, score: Array, freedom: int, level: float) -> NDArray[np.bool_]:
    """Return which pairs have variances that differ beyond chance, (k, k), from the scores of their differences (k, k).

    Fitted axes of equal true variance have the largest possible spread of sample variances. So a pair counts as
    different only if every block of neighbours (by decreasing variance) that contains the pair has a wider spread
    than a group of its size has by chance.
    """
    k = len(sigma)
    order = np.argsort(-sigma)
    back = np.argsort(order)
    sorted_score = score[np.ix_(order, order)]
    limits = np.array([np.inf, np.inf, *(spread_by_chance(m, freedom, level) for m in range(2, k + 1))])
    i, j = np.indices((k, k))
    clear = np.where(j > i, sorted_score > limits[np.abs(j - i) + 1], True)
    # All blocks [a, b] with a ≤ i and b ≥ j.
    clear = np.minimum.accumulate(clear, axis=0)
    clear = np.minimum.accumulate(clear[:, ::-1], axis=1)[:, ::-1] & (j > i)
    both = clear | clear.T
    return np.asarray(both[np.ix_(back, back)], bool)


@cache
def spread_by_chance(m: int, freedom: int, level: float) -> float:
    """Return the spread of the log σ of m fitted axes of equal variance that chance exceeds with probability `level`.

    In standard errors. The sample covariance of such a group is λ(I + A/√n), A of the Gaussian orthogonal ensemble:
    the spread is half the range of its eigenvalues, divided by an independent estimate of scale with `freedom`
    degrees of freedom. By simulation; large m are interpolated.
    """
    if m > 12 and m % 8:
        low, high = m // 8 * 8, m // 8 * 8 + 8
        low = max(low, 12)
        ends = [spread_by_chance(n, freedom, level) for n in (low, high)]
        return float(np.interp(m, (low, high), ends))
    random = np.random.default_rng(m)
    X = random.standard_normal((2000 if m <= 12 else 400, m, m))
    values = np.linalg.eigvalsh((X + X.swapaxes(1, 2)) / np.sqrt(2))
    scale = np.sqrt(freedom / random.chisquare(freedom, len(X)))
    return float(np.quantile((values[:, -1] - values[:, 0]) / 2 * scale, 1 - level))


def has_converged(run: Any) -> bool | None:
    """Return whether a run has converged; None for one of an older version, whose training did not measure it."""
    converged = run.attrs.get("converged", run.evaluation.get("converged"))
    if converged is not None and converged != "" and not converged:
        return False
    return None if way_stored(run.config) is Way.STEPS and "angle" not in run.evaluation else True
