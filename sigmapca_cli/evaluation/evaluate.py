"""All metrics of one solution on one data set: from the covariance if it is enough, else in one pass over blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sigmapca_cli.data.moments.implicit import about_zero
from sigmapca_cli.evaluation import metrics
from sigmapca_cli.evaluation.agreement import matched_cosine
from sigmapca_cli.evaluation.metrics import LOG_COSH_OF_GAUSSIAN, Array, log_cosh
from sigmapca_cli.system.processes import blas
from sigmapca_cli.system.row_shards import added, own

Metrics = dict[str, Any]
CACHED_ROWS = 2048  # rows whose arithmetic stays in the cache


def evaluate_solution(W: ArrayLike, sigma: ArrayLike, encoder: ArrayLike | None, source: Any) -> Metrics:
    """Return every metric that a run stores.

    Parameters
    ----------
    W : array-like of shape (p, k)
        Filters; reconstruction, variance and orthogonality are those of W.
    sigma : array-like of shape (k,)
        Standard deviations that the solution states.
    encoder : array-like of shape (p, k), or None
        What makes the components x @ encoder, whose kurtosis, negentropy and correlation are measured: the rotation of
        an ICA model is part of it only. None means W/std(y).
    source : sources.base.Source
        The data, standardised.

    Returns
    -------
    dict of str to float or ndarray
        One number, or one value a component. With a known truth also `mcc`, `mcc_chance`, `truth_similarity` (one
        value a true direction or source), and `amari` where the numbers of components are equal.

    Notes
    -----
    From the covariance where that is enough, else in one pass over blocks of rows; of a large file, from the rows that
    its first pass kept (`data.subsample`): `rows_measured` is their number then. The formulas are those of
    `evaluation.metrics`.
    """
    W = np.asarray(W, dtype=np.float64)
    mean, C = source.covariance()
    std = metrics.component_std(W, C)
    B = W / np.where(std > 0, std, 1.0) if encoder is None else np.asarray(encoder, dtype=np.float64)
    result: Metrics = {
        # Second moments about zero, the mean of the training rows; other rows may have another mean.
        "reconstruction_error": metrics.reconstruction_error(W, about_zero(C, mean)),
        "explained_variance": metrics.explained_variance(W, C),
        "orthogonality_error": metrics.orthogonality_error(W),
        "unit_norm_error": metrics.unit_norm_error(W),
        "sigma_error": metrics.sigma_error(sigma, W, C),
        "correlation": metrics.correlation(B, C),
        "total_variance": float(C.trace()),
    }
    axes = source.leading_axes(W.shape[1])
    result["pca_sigma"] = np.sqrt(np.maximum(axes.values[: W.shape[1]], 0.0))
    if axes.error > 0:  # they are found by products, see `data.moments.eigenpairs`
        result["pca_error"] = axes.error
    truth = getattr(source, "truth", None)
    sources = truth.sources if truth is not None and truth.sources is not None else None
    if not getattr(source, "has_rows", True):  # only moments are known
        return result
    result.update(streamed(B, mean, C, source, None if sources is None else np.asarray(sources)))
    similarity = result.pop("_similarity", None)
    if truth is not None:
        result.update(against_truth(W, B, C, truth, similarity))
    return result


def streamed(B: Array, mean: Array, C: Array, source: Any, sources: np.ndarray | None) -> Metrics:
    """Return kurtosis and negentropy of x @ B, and its |corr| with true sources (n, l), from the measured rows of x."""
    std = metrics.component_std(B, C)
    alive = std > 0
    A = B / np.where(alive, std, 1.0)
    offset = mean @ A
    fourth, cosh = np.zeros(B.shape[1]), np.zeros(B.shape[1])
    cross = np.zeros((B.shape[1], 0 if sources is None else sources.shape[1]))
    if sources is not None:
        centre, spread = sources.mean(axis=0), sources.std(axis=0)
    A32 = A.astype(np.float32)
    shift = offset.astype(np.float32)
    at = own(source.n).start
    sample = source.sample if sources is None else None
    n = source.n if sample is None else sample.count
    # More threads are not faster on blocks that stay in the cache, and slower on busy cores.
    with blas(1):
        for z in source.project(A32, sample, size=CACHED_ROWS):
            # The rows are float32: float64 would take twice the time and add no correct digit. Only the sums over
            # blocks are float64.
            z -= shift
            if sources is not None:
                cross += z.T @ (sources[at : at + len(z)] - centre)
            ones = np.ones(len(z), np.float32)
            cosh += ones @ log_cosh(z)
            z *= z
            z *= z
            fourth += ones @ z
            at += len(z)
    fourth, cosh, cross = added((fourth, cosh, cross), patient=True)
    result: Metrics = {
        "kurtosis": np.where(alive, fourth / n - 3, 0.0),
        "negentropy": np.where(alive, (cosh / n - LOG_COSH_OF_GAUSSIAN) ** 2, 0.0),
    }
    if n < source.n:
        result["rows_measured"] = n
    if sources is not None:
        result["_similarity"] = np.minimum(np.abs(cross) / n / np.where(spread > 0, spread, 1.0), 1.0)
    return result


def against_truth(W: Array, B: Array, C: Array, truth: Any, similarity: Array | None) -> Metrics:
    """Return `mcc`, its chance level, the similarity of each true direction or source, and `amari` if square."""
    if truth.kind == "filters":
        # The directions of the components: those of W for PCA, those of WΣ⁻¹V if a rotation follows.
        similarity = metrics.cosines(B, truth.filters)
    if similarity is None:
        return {}
    rows, columns = metrics.match(similarity)
    each = np.zeros(similarity.shape[1])
    each[columns] = similarity[rows, columns]
    result: Metrics = {
        "mcc": float(similarity[rows, columns].mean()),
        # Sources are mixed into p features: |corr| with them is |cos| in the p dimensions of whitened rows, not in n.
        # A random rotation of three sources therefore reaches 0.83.
        "mcc_chance": matched_cosine(len(W), *similarity.shape),
        "truth_similarity": each,
    }
    if similarity.shape[0] == similarity.shape[1]:
        result["amari"] = metrics.amari(
            similarity if truth.kind != "filters" else unit_map(truth.filters, B, C)
        )
    return result


def unit_map(E: Array, B: Array, C: Array) -> Array:
    """Return P (l, k) with y = s·P, for sources s = xE and components y = xB of unit variance.

    E (p, l), B (p, k), C (p, p). The Amari distance measures the map from sources to components. Cosines of filters
    are not this map if the variances differ: for a rotation by 0.1 rad of two sources of σ 5 and 1 they are 0.100, the
    map 0.249.
    """
    std = metrics.component_std(E, C)
    return std[:, None] * (E.T @ B) / np.maximum(metrics.component_std(B, C), np.finfo(float).tiny)
