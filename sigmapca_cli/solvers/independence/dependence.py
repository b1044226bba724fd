"""Are the components independent, as far as these rows tell? A test of the model of solver=independence.

Four bounded or slowly growing functions of each component, two odd and two even: z e^(−z²/2), z/√(1 + z²), e^(−z²/2)
and ln(1 + z²). Independent components have no correlation between a function of one and a function of the other. Over
all permutations of the rows of one of them the correlation r has mean 0 and variance 1/(n − 1) exactly, and is close to
Gaussian, because no row is far out: the level holds for heavy tails and few rows. (With z² − 1 and |z|, and each
product's own variance, t reached 10 for independent two-valued sources of P = .05.) Where rows depend on their
neighbours, or their sizes change slowly, the variance is that of the sums over groups of rows.

There are two tests of independent rows. The largest r of each pair names the pairs. The sum of all r², which is close
to a multiple of χ², sees dependence that is spread over many pairs: in 75 to 280 rows of real tables it is often the
only one that does. Of rows that depend on their neighbours all sizes are tested together: a volatility that all
components share makes the sizes of all pairs rise and fall together, too little to show in one pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sigmapca_cli.solvers.independence.contrast import bell
from sigmapca_cli.solvers.independence.rows import Part, Rows
from sigmapca_cli.solvers.rows.inputs import times
from sigmapca_cli.system.row_shards import added

Array = np.ndarray

FUNCTIONS = 4
"""Number of functions of each component."""
DEPENDENCE_LEVEL = 0.01
"""Probability that independent components are called dependent: some pair of them exceeds its bound."""
TOGETHER = 0.7
"""The same for all pairs together, times √n: with few rows dependence must not be passed over for want of power, and
with many it shows at any level. It is 0.07 at 100 rows, 0.02 at 1,000."""
GROUPS, WIDE = 64, 16
"""Numbers of groups of neighbouring rows, where rows depend on their neighbours; the wider groups are for sources whose
size changes more slowly than a group lasts."""
FEWEST = 50
"""Number of rows from which on all pairs are tested together: the sum is then close to a multiple of χ²."""
SLOW = 1.5
"""Rows without an order may still follow each other: Laplace samples whose size changes slowly, as returns do, have no
correlation of neighbours. Where the variance of a pair between groups is more than this times that between rows, the
variance of independent rows is multiplied by their ratio.
"""
TINY = float(np.finfo(np.float64).tiny)
TESTED_ROWS = 25_000
"""Number of rows of the test of independent rows: more would show dependence that changes nothing."""


@dataclass(frozen=True)
class Dependence:
    """What the test of `rows` rows found, for every pair of components.

    statistic (k, k): the largest of the 16 correlations of their functions, in standard errors of independent
    components; correlation (k, k): that correlation, without a sign; pvalue (k, k): its probability for independent
    components, times 16, 1 on the diagonal; together: probability of so large a sum over all pairs, of squared
    correlations, and where rows depend on their neighbours of the products of sizes; 1 of few rows.
    """

    statistic: Array
    correlation: Array
    pvalue: Array
    rows: int
    together: float = 1.0

    def pairs(self, level: float = DEPENDENCE_LEVEL) -> list[tuple[int, int]]:
        """Return the pairs that are dependent beyond chance in all pairs, the most dependent first; from 0."""
        i, j = np.triu_indices(len(self.pvalue), 1)
        bound = level / max(len(i), 1)
        order = np.argsort(-self.statistic[i, j], kind="stable")
        return [(int(i[m]), int(j[m])) for m in order if self.pvalue[i[m], j[m]] <= bound]

    @property
    def independent(self) -> bool:
        """Whether neither a pair nor all together depend beyond chance, so that the rows do not refute the model."""
        return not self.is_spread and not self.pairs()

    @property
    def is_spread(self) -> bool:
        """Whether all pairs together depend beyond chance."""
        return self.together < TOGETHER / np.sqrt(max(self.rows, 1))


def dependence(rows: Rows, R: Array, *, ordered: bool = False) -> Dependence:
    """Test the components y = YR for dependence; ordered: rows depend on their neighbours.

    Rows without an order are tested on a part of them. Components are numbered as the columns of R.
    """
    from scipy.special import ndtr, stdtr  # not above: reports import this module too

    if not ordered:
        rows = rows.subset(TESTED_ROWS)
    M = R / np.sqrt(np.einsum("ai,ab,bi->i", R, rows.C, R))
    mean, square = rows.means(_sums, M)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    # a two-valued component has even functions that are constant
    constant = spread <= 1e-9 * (1 + np.abs(mean))
    scale = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))

    def products(z: Array, w: Array | None, power: int = 1) -> tuple[Array, ...]:
        u = ((functions(z) - mean) * scale) ** power
        return (u.T @ u,) if w is None else (u.T @ (u * w),)

    k = rows.k
    first, squares, count = _by_group(rows, products, M, GROUPS)
    near, far = _alike(squares, k), _alike(_by_group(rows, products, M, WIDE)[1], k)
    growth = np.ones_like(first)
    if ordered:
        error = np.sqrt(squares * np.maximum(far / np.maximum(near, TINY), 1.0))
        statistic = np.abs(first) / np.where(error > 0, error, np.inf)
        tail = 2 * stdtr(max(count - 1, 1), -statistic)
    else:
        if rows.n >= 20 * WIDE:
            (fourth,) = rows.means(lambda z, w: products(z, w, 2), M)
            # the variance of a row, whatever depends on what
            alone = np.maximum(_alike(fourth - first**2, k), TINY)
            slow = np.maximum(far, near) * (rows.effective - 1) / alone
            growth = np.where(slow > SLOW, slow, 1.0)
        statistic = np.abs(first) * np.sqrt((rows.effective - 1) / growth)
        tail = 2 * ndtr(-statistic)
    largest = [_over_functions(value, k) for value in (statistic, np.abs(first), -tail)]
    pvalue = np.minimum(-largest[2] * FUNCTIONS**2, 1.0)
    np.fill_diagonal(pvalue, 1.0)
    off = 1 - np.eye(k)
    together = 1.0
    if rows.n >= FEWEST and k > 1:

        def sizes(z: Array, w: Array | None) -> tuple[Array, ...]:
            return (_products_of_sizes((functions(z) - mean) * scale, w),)

        together = _sizes_together(rows, sizes, M) if ordered else _together(first, growth, k, rows.effective)
    return Dependence(largest[0] * off, largest[1] * off, pvalue, rows.n, together)


def _products_of_sizes(u: Array, w: Array | None) -> Array:
    """Return Σ over rows of Σ_{i<j} d_i d_j, (1,), from functions u (m, 4k); d rises with the size of a component."""
    even = u.reshape(len(u), FUNCTIONS, -1)
    d = even[:, 3] - even[:, 2]  # ln(1 + z²) rises with |z|, e^(−z²/2) falls
    return np.asarray(times(((d.sum(1) ** 2 - np.square(d).sum(1)) / 2)[:, None], w).sum(0))


def _sizes_together(rows: Rows, sizes: Part, M: Array) -> float:
    """Return the probability, for independent components of rows in time, of so large a sum of `sizes`."""
    from scipy.special import stdtr

    # where wide groups vary more, their number is that of the independent ones
    total, spread, count = max(
        (_by_group(rows, sizes, M, most) for most in (GROUPS, WIDE)), key=lambda found: found[1]
    )
    if not spread[0] > 0:
        return 1.0
    return float(2 * stdtr(max(count - 1, 1), -abs(float(total[0])) / np.sqrt(float(spread[0]))))


def _together(correlation: Array, growth: Array, k: int, n: float) -> float:
    """Return the probability, for independent components, of a sum of squared correlations (4k, 4k) as large as this.

    growth (4k, 4k): by how much their variances are larger than those of independent rows.

    For a pair with correlations A and B of its functions within each component, (n − 1) times the sum has mean
    tr A · tr B and variance 2‖A‖²‖B‖²; the whole sum is compared with the multiple of χ² of its mean and variance.
    """
    from scipy.special import chdtrc

    own, across = (
        np.square(correlation / scale).reshape(FUNCTIONS, k, FUNCTIONS, k).sum((0, 2))
        for scale in (1.0, np.sqrt(growth))
    )
    trace = np.diag(correlation).reshape(FUNCTIONS, k).sum(0)
    i, j = np.triu_indices(k, 1)
    mean = float((trace[i] * trace[j]).sum())
    variance = float(2 * (np.diag(own)[i] * np.diag(own)[j]).sum())
    if not variance > 0:
        return 1.0
    unit = variance / (2 * mean)
    return float(chdtrc(mean / unit, (n - 1) * across[i, j].sum() / unit))


def functions(z: Array) -> Array:
    """Return the functions of the components z (m, k), side by side, (m, 4k)."""
    e, q = bell(z)
    wide = np.log1p(q)
    q += 1
    return np.concatenate([z * e, z / np.sqrt(q), e, wide], axis=1)


def _sums(z: Array, w: Array | None) -> tuple[Array, ...]:
    u = functions(z)
    return times(u, w).sum(0), times(np.square(u), w).sum(0)


def _by_group(rows: Rows, products: Part, M: Array, most: int) -> tuple[Array, Array, int]:
    """Return the sum over groups of their products, its squared standard error, and the number of groups."""
    first = second = np.zeros(())
    groups = rows.groups(int(np.clip(rows.n // 20, 2, most)))
    for group in groups:
        (one,) = group.means(products, M, alone=True)
        first, second = first + one, second + one**2
    first, second, count = added((first, second, np.array([float(len(groups))])))
    n = int(count[0])
    return first, (second - first**2 / n) * n / max(n - 1, 1), n


def _alike(value: Array, k: int) -> Array:
    """Return (4k, 4k) with the mean over the four entries of a pair whose functions are odd or even alike."""
    mean = value.reshape(2, 2, k, 2, 2, k).mean((1, 4), keepdims=True)
    return np.asarray(np.broadcast_to(mean, (2, 2, k, 2, 2, k)).reshape(value.shape))


def _over_functions(value: Array, k: int) -> Array:
    """Return the largest of the 16 entries of each pair, (k, k), from (4k, 4k)."""
    return np.asarray(value.reshape(FUNCTIONS, k, FUNCTIONS, k).max(axis=(0, 2)))
