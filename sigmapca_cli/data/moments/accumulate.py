"""Exact moments of data that need not fit in memory, and the questions of scale and rank asked of them."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import available_threads, blas, mapped
from sigmapca_cli.system.row_shards import gathered, sharing, together

Array = NDArray[np.float64]

ONE_THREAD_BELOW = 1000
"""Features below which one thread finds eigenvectors sooner than two that wait for each other."""
LARGEST_VALUE, SMALLEST_VALUE = 1e36, 1e-36
HUGE = 1e8
"""Means and scales that float32 holds with room to spare."""
REUSED_ENTRIES = 1 << 21
"""Entries up to which a thread keeps the memory of a block for the next one: 16 MB."""
TILE_ENTRIES = 1 << 17
"""Number of float64 entries of a tile: 1 MB, which stays in the cache of a core."""
TILE_WIDTH = 64
"""Features of a slice at least; widths are multiples of it."""
SEARCHED = 1 << 13
"""Rows of a matrix whose entries are compared at once."""
_own = threading.local()


@dataclass
class Moments:
    """Count, mean (p,) and centred second moment (p, p) or its diagonal (p,), both divided by n (biased)."""

    n: int
    mean: Array
    second: Array


def merge(a: Moments | None, b: Moments) -> Moments:
    """Moments of two disjoint sets of rows together.

    d = mean_b − mean_a, n = n_a + n_b: mean = mean_a + d n_b/n, n S = n_a S_a + n_b S_b + d dᵀ n_a n_b/n.
    No large sums are subtracted, so a mean far from zero costs no accuracy.
    Source: Chan, Golub and LeVeque (1983), eqs 2.1.
    """
    if a is None:
        return b
    n = a.n + b.n
    d = b.mean - a.mean
    between = np.outer(d, d) if a.second.ndim == 2 else d * d
    fa, fb = a.n / n, b.n / n
    return Moments(n, a.mean + d * fb, a.second * fa + b.second * fb + between * (fa * fb))


def block_moments(block: Any, diagonal: bool = False) -> Moments:
    """Moments of the rows of one block, in float64, shifted by its first row so that constants stay exact."""
    block = np.asarray(block)  # rows of a file may be read only now
    mean, second, lost = _sums(block, diagonal)
    # Squares below 1e-308 vanish: a feature that varies is not to be called constant.
    refuse(lost, "small: multiply the data")
    return Moments(len(block), mean, second / len(block))


def _sums(block: NDArray, diagonal: bool) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return mean (p,), sum of the centred products, and which features vary though their squares vanish."""
    shift = block[0].astype(np.float64)
    x = workspace(block.shape)
    x[...] = block
    x -= shift
    # Squares above 1e308 become infinite; `standardisation` refuses them in words.
    with np.errstate(over="ignore", invalid="ignore"):
        mean = x.mean(axis=0)
        x -= mean
        second = np.einsum("ij,ij->j", x, x) if diagonal else x.T @ x
    lost = (second if diagonal else second.diagonal()) == 0
    if lost.any():
        lost &= x.any(axis=0)
    return mean + shift, second, lost


def workspace(shape: tuple[int, ...]) -> Array:
    """Return a float64 array of this shape, of this thread alone and valid until its next call: not initialised.

    New memory for every block costs more than the arithmetic on it. Large blocks get new memory.
    """
    size = int(np.prod(shape))
    if size > REUSED_ENTRIES:
        return np.empty(shape)
    if len(getattr(_own, "entries", ())) < size:
        _own.entries = np.empty(size)
    return np.asarray(_own.entries[:size].reshape(shape))


def streamed_moments(blocks: Iterable[NDArray], diagonal: bool = False) -> Moments:
    """Moments of all rows of an iterable of (m, p) blocks, of which only a few are held at a time.

    Where ranks hold shares of the rows, the blocks are those of this rank, and the moments those of all ranks.
    """
    some = (block for block in blocks if len(block))
    if sharing() is not None:
        return moments_of_shares(some, diagonal)
    total: Moments | None = None
    for moments in every_block(some, diagonal):
        total = merge(total, moments)
    if total is None:
        raise InputError("the data has no rows: give at least 2 samples")
    return total


def moments_of_shares(blocks: Iterator[NDArray], diagonal: bool) -> Moments:
    """Return the moments of the blocks of all ranks, the same on every rank.

    Count, mean and variances of each block are gathered and merged in the order of the blocks: these have the bits of
    one process, and with them the hash of the data. Covariances are merged rank by rank.
    """

    def read() -> tuple[Moments | None, list[Moments]]:
        total, each = None, []
        for m in every_block(blocks, diagonal):
            total = merge(total, m)
            each.append(Moments(m.n, m.mean, m.second if diagonal else m.second.diagonal().copy()))
        return total, each

    own, each = together(read)
    widths = [len(m.mean) for found in gathered(each[:1]) for m in found]
    if len(set(widths)) > 1:
        raise InputError(
            f"the processes read data of {min(widths)} and of {max(widths)} features: give all the same files"
        )
    total: Moments | None = None
    for moments in (m for found in gathered(each) for m in found):
        total = merge(total, moments)
    if total is None:
        raise InputError("the data has no rows: give at least 2 samples")
    if diagonal:
        return total
    whole: Moments | None = None
    for part in gathered(own):
        whole = whole if part is None else merge(whole, part)
    assert whole is not None
    np.fill_diagonal(whole.second, total.second)
    return Moments(total.n, total.mean, whole.second)


def every_block(blocks: Iterator[NDArray], diagonal: bool) -> Iterator[Moments]:
    """Moments of each block, in order: threads take blocks of few features, and share the product of many."""
    first = next(blocks, None)
    if first is None:
        return
    blocks = chain([first], blocks)
    if diagonal or first.shape[1] < ONE_THREAD_BELOW:
        yield from mapped(lambda block: block_moments(block, diagonal), blocks)
        return
    with blas(available_threads()):
        yield from map(block_moments, blocks)


def constant_features(mean: Array, variance: Array) -> NDArray[np.bool_]:
    """Features whose variance is nothing but the rounding of their mean: relative, so any unit works."""
    return variance <= (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2


def refuse(bad: NDArray[np.bool_], how: str) -> None:
    """Refuse features that float32 rows cannot hold."""
    if bad.any():
        raise InputError(
            f"the values of feature {int(bad.argmax())}, counted from 0, are too {how} by a constant"
        )


def refuse_lost(X: Any, variance: Array) -> None:
    """Refuse a feature of a dense or sparse matrix X (n, p) that varies though the squares of its deviations vanish."""
    if (variance == 0).any():
        high, low = X.max(axis=0), X.min(axis=0)
        apart = high - low
        apart = np.ravel(apart.toarray() if hasattr(apart, "toarray") else apart)
        refuse((variance == 0) & (apart > 0), "small: multiply the data")


def standardisation(
    mean: Array, variance: Array, standardise: str, epsilon: float | None, relative_epsilon: float
) -> tuple[Array, NDArray[np.bool_]]:
    """The divisor of each feature and which features are constant.

    scale = √(var + ε) for "feature", 1 (or a common unit, see below) for "none". ε = `epsilon` when given (the
    authors': 1e-3), otherwise `relative_epsilon` × the mean variance of the varying features: data times 1e-7 gives
    the same rows. Constant features get scale 1 when ε is 0, and their rows are exactly 0.
    """
    # An infinite or missing variance comes from squares above 1e308.
    refuse(~(np.maximum(np.abs(mean), np.sqrt(variance)) < LARGEST_VALUE), "large: divide the data")
    constant = constant_features(mean, variance)
    if standardise == "none":
        return np.full_like(mean, common_unit(variance[~constant])), constant
    if epsilon is None:
        epsilon = 0.0 if constant.all() else relative_epsilon * float(variance[~constant].mean())
    scale = np.sqrt(np.where(constant, 0.0, variance) + epsilon)
    scale[scale == 0] = 1.0
    refuse(scale < SMALLEST_VALUE, "small: multiply the data")
    return scale, constant


def common_unit(variance: Array) -> float:
    """1, or the power of ten nearest to the data's scale where float32 cannot hold fourth powers of it.

    One unit for all features leaves every direction as it is.
    """
    size = float(np.sqrt(variance.mean())) if len(variance) else 1.0
    if 1 / HUGE < size < HUGE:
        return 1.0
    unit = 10.0 ** np.round(np.log10(size))
    refuse(np.array([unit < SMALLEST_VALUE]), "small: multiply the data")
    return float(unit)


def rank_of(values: NDArray[Any], rtol: float | None = None) -> int:
    """Rank of a covariance from its eigenvalues (p,), in any order: those above rtol × the largest, 8·p·eps(float64) by
    default.
    """
    top = float(values.max())
    if top <= 0:
        return 0
    tolerance = 8 * len(values) * float(np.finfo(np.float64).eps) if rtol is None else rtol
    return int(np.count_nonzero(values > tolerance * top))


def principal_axes(C: Array) -> tuple[Array, Array]:
    """Eigenvalues (p,), decreasing, and eigenvectors (p, p) of a covariance; each vector's largest entry is positive.

    eigh leaves the sign open and builds of LAPACK differ in it: one rule makes the axes unique.
    """
    with blas(1 if len(C) < ONE_THREAD_BELOW else available_threads()):
        values, E = np.linalg.eigh(C)
    values, E = values[::-1], E[:, ::-1]
    return values, signed_axes(E)


def signed_axes(V: Array) -> Array:
    """Return V (p, m) with the largest entry of each column positive."""
    return np.asarray(V * axis_signs(V))


def axis_signs(V: Array) -> Array:
    """Return the signs (m,) that make the largest entry of each column of V (p, m) positive."""
    return np.where(V[largest_entries(V)] < 0, -1.0, 1.0)


def largest_entries(V: Array, near: float = 0.0) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index, rows and columns, of the entry of largest absolute value of each column of V (p, m).

    The first of those that are smaller than the largest by a share of at most `near`. A slice of V is looked at at a
    time: new memory for |V| would take longer than the search.
    """
    columns = np.arange(V.shape[1])
    rows = np.zeros(V.shape[1], np.intp)
    least = np.maximum(V.max(axis=0, initial=-np.inf), -V.min(axis=0, initial=np.inf)) * (1 - near)
    left = np.ones(V.shape[1], bool)
    for start in range(0, len(V), SEARCHED):
        reached = np.abs(V[start : start + SEARCHED]) >= least
        found = left & reached.any(axis=0)
        rows[found] = start + reached[:, found].argmax(axis=0)
        left &= ~found
        if not left.any():
            break
    return rows, columns


def check_k(k: int, n: int, p: int, rank: int) -> None:
    """Raise InputError unless 1 ≤ k ≤ rank ≤ min(n, p); the message holds both numbers."""
    if k < 1:
        raise InputError(f"k = {k}: at least 1 component is needed")
    if k > min(n, p):
        raise InputError(
            f"k = {k} is more than min(n, p) = {min(n, p)} of the data ({n} samples × {p} features): lower k"
        )
    if k > rank:
        raise InputError(
            f"k = {k} is more than the numerical rank {rank} of the data ({n} × {p}): "
            + (f"lower k to {rank}" if rank else "all rows are equal, there is nothing to learn")
        )
