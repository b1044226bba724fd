"""The number of components: a number, a fraction of the variance, or a model selection criterion."""

from math import lgamma, log, pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.data.moments.accumulate import Array, rank_of
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.data.moments.covariance import SecondMoments

DEFAULT = 32
LEAST_RANK = 6
"""Of fewer directions, a single large one would look like a component above noise."""
NEARLY_ALL = 0.9
"""Share of the rank from which on a number of components leaves out too little to be one of a signal above noise."""
PARALLEL_WORK, PARALLEL_SIDE = 1e9, 600
"""Multiplications of a covariance, and its size, up to which rows are permuted."""
PERMUTED = 5
"""Number of times that the columns are permuted."""
LEAST_LOG = log(1e-300)
"""Logarithm of a gap of equal eigenvalues."""
MOST_SEARCHED = 1024
"""Largest number of leading components that are computed to find how many a word or a share means."""


def count_for(source: "SecondMoments", k: Any) -> int:
    """Return the number of components that `k` means for a source, of which only leading axes may be known.

    Raise InputError if all eigenvalues would be needed and there are too many.
    """
    if isinstance(k, int):
        return k
    axes = source.leading_axes(DEFAULT)
    if axes.whole:
        if k == "mle" and len(axes.vectors) > len(axes.values):
            raise InputError(f"k=mle needs all {len(axes.vectors)} eigenvalues: choose a number, or k=mdl")
        return count_of(k, axes.values, source.n, source.constant_features)
    few = min(source.n, source.p)
    if k == "auto":
        return min(DEFAULT, max(axes.rank, 1))
    if isinstance(k, float):
        for m in (64, 256, MOST_SEARCHED):
            axes = source.leading_axes(min(m, few // 5))
            known = axes.values[: min(m, few // 5)]
            if known.sum() > k * axes.total:
                return int(np.searchsorted(np.cumsum(known), k * axes.total, side="right")) + 1
        reached = known.sum() / axes.total
        raise InputError(
            f"k={k:g}: the leading {len(known)} components have {reached:.2g} of the variance, no more are computed: "
            "choose a number"
        )
    raise InputError(
        f"k={k} needs all eigenvalues, and {source.n} rows × {source.p} features have {few}: choose a number, or "
        "a share such as k=0.9"
    )


def count_of(k: Any, values: NDArray[Any], n: int, constant: int = 0) -> int:
    """Return the number of components that `k` means, for eigenvalues (p,), decreasing, of the covariance of n rows.

    A whole number means itself. A fraction between 0 and 1: the fewest components that explain more variance, as in
    scikit-learn. "all": the numerical rank. "auto": 32, or the rank if it is smaller. "mdl": `by_mdl`; "mle": `by_mle`.
    `constant` of the features do not vary.
    """
    if isinstance(k, int):
        return k
    rank = max(1, min(rank_of(values), n - 1))
    if isinstance(k, float):
        return by_share(values, k)
    if k == "mdl":
        # Where directions have no variance at all there is no noise, and MDL(k) is infinite for fewer components.
        return rank if rank < min(len(values) - constant, n - 1) else by_mdl(values[:rank], n)
    if k == "mle":
        return min(by_mle(values, n), rank)
    return min(DEFAULT, rank) if k == "auto" else rank


def by_share(values: Array, share: float) -> int:
    """Return the smallest number of leading components with more than this share of the total variance."""
    positive = np.maximum(values, 0.0)
    total = positive.sum()
    if total <= 0:
        return 1
    return min(int(np.searchsorted(np.cumsum(positive) / total, share, side="right")) + 1, len(values))


def at_a_gap(values: Array, k: int, n: int) -> int:
    """Return the smallest number ≥ k after which the eigenvalues (p,) drop by more than chance; else the rank.

    If k cuts through directions of equal variance, chance decides which of them are kept. By chance, two eigenvalues
    of n Gaussian rows differ by about 2 standard errors of a log variance, 2√(4/n).
    """
    rank = max(1, min(rank_of(values), n - 1))
    logs = np.log(np.maximum(values[:rank], np.finfo(float).tiny))
    for end in range(k, rank):
        if logs[end - 1] - logs[end] > 4 / np.sqrt(n):
            return end
    return max(k, rank) if k <= rank else k


def by_mdl(values: Array, n: int) -> int:
    """Return the k ≥ 1 of minimum description length, for k components and white noise, real Gaussian data."""
    return max(1, least_description(values, n)) if len(values) > 1 else len(values)


def least_description(values: Array, n: int) -> int:
    """Return the k ≥ 0 of minimum description length.

    MDL(k) = −(n/2)(p − k) log(G/A) + (1/4) k (2p − k + 1) log n, with G and A the geometric and arithmetic mean of the
    p − k smallest eigenvalues. Source: Wax and Kailath (1985), the free parameters counted for real data.
    """
    p = len(values)
    k = np.arange(p)
    left = p - k
    logs = np.cumsum(np.log(values)[::-1])[::-1] / left
    means = np.cumsum(values[::-1])[::-1] / left
    length = -n / 2 * left * (logs - np.log(means)) + k * (2 * p - k + 1) / 4 * log(n)
    return int(length.argmin())


def by_mle(values: Array, n: int) -> int:
    """Return the most probable dimension of probabilistic PCA, 1 … p − 1, by Minka's approximation of the evidence.

    Source: Minka (2000), eqs 30–31, as in scikit-learn's PCA(n_components="mle"), but with thresholds that scale with
    the data.
    """
    p = len(values)
    if p < 2:
        return p
    values = np.maximum(values, 0.0) / values[0]
    tails = _log_gaps(values)
    prior = _log_prior(p)
    evidence = [prior[k] + _evidence(values, k, n, tails) for k in range(1, p)]
    return 1 + int(np.argmax(evidence))


Tails = tuple[Array, Array, Array]


def _log_gaps(values: Array) -> Tails:
    """Return what the evidence of every k sums, for eigenvalues (p,), decreasing, all sums over pairs i < j.

    The logarithms of v_i − v_j over j ≥ k (p, p + 1), how many of these gaps are 0, and the logarithms of
    (v_i − v_j)(1/v_j − 1/v_i) over i < j < k (p + 1,).
    """
    p = len(values)
    gaps = np.triu(values[:, None] - values, 1)
    positive = gaps > 0
    logs = np.log(np.where(positive, gaps, 1.0))
    below = np.triu(np.ones((p, p), dtype=bool), 1)
    inverse = 1 / np.maximum(values, 1e-15)
    products = np.where(below, gaps * (inverse - inverse[:, None]), 1.0)
    curvature = np.log(np.maximum(products, np.exp(LEAST_LOG)))

    def tail(x: NDArray[Any]) -> Array:
        return np.pad(np.cumsum(x[:, ::-1], axis=1, dtype=np.float64)[:, ::-1], ((0, 0), (0, 1)))

    within = np.concatenate([[0.0], np.cumsum(curvature.sum(axis=0))])  # pairs whose larger number is below k
    return tail(logs), tail(below & ~positive), within


def _log_prior(p: int) -> Array:
    """Return the log prior of the axes of k of p components, for every k (p + 1,)."""
    each = [lgamma(half) - half * log(pi) - log(2) for half in (np.arange(p, 0, -1) / 2).tolist()]
    return np.concatenate([[0.0], np.cumsum(each)])


def _evidence(values: Array, k: int, n: int, tails: Tails) -> float:
    """Return the log evidence of k components without the prior, up to a constant."""
    p = len(values)
    if values[k - 1] < 1e-15:
        return -np.inf
    noise = max(float(values[k:].mean()), 1e-15)
    fit = -n / 2 * (float(np.log(values[:k]).sum()) + (p - k) * log(noise))
    m = p * k - k * (k + 1) / 2
    logs, zeros, within = tails
    steps = 1 / noise - 1 / values[:k]
    above = steps > 0
    equal = np.where(above, zeros[:k, k], p - k)  # these would make the approximation infinite
    to_noise = np.where(above, logs[:k, k] + (p - k - equal) * np.log(np.where(above, steps, 1.0)), 0.0)
    curvature = within[k] + float((to_noise + equal * LEAST_LOG).sum()) + m * log(n)
    return fit + (m + k) / 2 * log(2 * pi) - curvature / 2 - k / 2 * log(n)


def chance_eigenvalues(x: Array) -> Array | None:
    """Return the mean eigenvalues of the covariance of rows x (n, p) whose columns are each permuted by themselves.

    This keeps the distribution of each column and takes every relation away: parallel analysis counts the components
    above it. None where it would take long. Source: Horn (1965).
    """
    if x.size * min(x.shape) > PARALLEL_WORK or min(x.shape) > PARALLEL_SIDE or len(x) < 3:
        return None
    rng = np.random.default_rng(0)

    def values_of(rows: Array) -> Array:
        centred = rows - rows.mean(axis=0)
        gram = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
        return np.linalg.eigvalsh(gram)[::-1] / len(rows)

    return np.asarray(np.mean([values_of(rng.permuted(x, axis=0)) for _ in range(PERMUTED)], axis=0))


def above_chance(values: Array, chance: Array) -> int:
    """Return the number of leading eigenvalues above those by chance."""
    few = min(len(values), len(chance))
    above = values[:few] > chance[:few]
    return few if above.all() else int(above.argmin())


def none_stands_out(found: dict[str, Any], rank: int, n: int) -> bool:
    """Return whether the eigenvalues are those of columns of one variance without any relation, for n rows.

    Then no gap is larger than by chance, and the least description length is that of no component. Parallel analysis
    keeps one or two of such a table as often as not, because it compares with the mean of what chance gives.
    """
    values = np.asarray(found["eigenvalues"])[:rank]
    if rank < 2:
        return False
    logs = np.log(np.maximum(values, np.finfo(float).tiny))
    return bool((logs[:-1] - logs[1:]).max() <= 4 / np.sqrt(n)) and least_description(values, n) == 0


def advised(found: dict[str, Any], rank: int, n: int) -> tuple[int, str]:
    """Return a number of components and the reason, from `choices_of_k` of whole eigenvalues, for n rows.

    The least description length (MDL), where it is below half the rank and at a gap; else a share of the variance, at
    the next gap; never all components, or nearly all, where there is a gap before, because chance would choose among
    directions of noise: then up to the largest gap, or, if it comes last, those above parallel analysis.
    """
    if rank == 1:
        return 1, "the rows lie on one line"
    values = np.asarray(found["eigenvalues"])
    logs = np.log(np.maximum(values[:rank], np.finfo(float).tiny))
    gaps = logs[:-1] - logs[1:]
    chance = 4 / np.sqrt(n)
    mdl = int(found["mdl"])
    if rank >= LEAST_RANK and mdl < rank / 2 and gaps[mdl - 1] > chance:
        return mdl, f"least description length (MDL), at a gap of the eigenvalues; the rank is {rank}"
    k = at_a_gap(values, found["95 %"], n)
    if k < rank and (rank < LEAST_RANK or k < NEARLY_ALL * rank or gaps[k - 1] > 2 * chance):
        return k, "95 % of the variance, at the next gap of the eigenvalues"
    above, largest = int(found.get("parallel", 0)), int(gaps.argmax()) + 1
    is_large = rank >= LEAST_RANK and gaps.max() > 2 * chance
    if is_large and largest < NEARLY_ALL * rank:
        return largest, "the largest gap of the eigenvalues"
    if rank >= LEAST_RANK and 1 < above < rank / 2 and gaps[above - 1] > chance:
        return above, "those above chance (parallel analysis), at a gap of the eigenvalues"
    if is_large:
        return largest, "the largest gap of the eigenvalues, the last ones being tiny"
    return k, "all directions: no gap of the eigenvalues is larger than by chance"


def by_broken_stick(values: Array) -> int:
    """Return the number of leading components above the broken-stick model, b_i = (1/p) Σ_{j ≥ i} 1/j."""
    p, total = len(values), values.sum()
    if total <= 0:
        return 0
    pieces = np.cumsum(1 / np.arange(p, 0, -1))[::-1] / p
    above = values / total > pieces
    return p if above.all() else int(above.argmin())
