"""The test of the model, and τ by it: 1 for independent components, else .1 with the pairs that depend."""

import itertools

import numpy as np
import pytest
from mechanisms import every
from sklearn.datasets import load_breast_cancer, load_wine
from solver_helpers import matched
from source_kinds import ALL, planted, projected, series
from thread_ranks import on_ranks

from sigmapca_cli.solvers.independence.dependence import DEPENDENCE_LEVEL, dependence
from sigmapca_cli.solvers.independence.fit import CAUTIOUS, LIKELIHOOD, answered
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import solve


def pairwise(Y, **options):
    return dependence(Rows.of(Y), np.eye(Y.shape[1]), **options)


TABLES = itertools.product(["t, 3 df", "exponential", "two-valued, P = .25", "Gaussian"], [100, 1000])


@pytest.mark.parametrize(("kind", "n"), every(TABLES, [("t, 3 df", 100)]))
def test_independent_rows_are_called_dependent_at_the_level(kind, n):
    """200 tables of 6 components: at most a few more than the level is false."""
    wrong = sum(
        not pairwise(ALL[kind](np.random.default_rng(seed), (n, 6))).independent for seed in range(200)
    )
    level = DEPENDENCE_LEVEL + 0.7 / np.sqrt(n)
    assert wrong <= 200 * level + 4 * np.sqrt(200 * level)


@pytest.mark.parametrize("make", ["variance", "product", "square"])
def test_kinds_of_dependence_without_correlation_are_seen(make):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1000, 4))
    common = rng.exponential(size=1000)
    if make == "variance":
        z[:, :2] *= common[:, None]
    elif make == "product":
        z[:, 1] = z[:, 0] * z[:, 2]
    else:
        z[:, 1] = z[:, 0] ** 2 + 0.5 * z[:, 1]
    test = pairwise(z)
    assert not test.independent
    assert test.pairs()[0] in {(0, 1), (1, 2)}


def test_rows_that_depend_on_their_neighbours_need_groups():
    """Slow independent series look dependent row by row, and do not by groups; common variance is still seen."""
    rng = np.random.default_rng(0)
    x = np.zeros((20_000, 4))
    noise = rng.normal(size=x.shape)
    for t in range(1, len(x)):
        x[t] = 0.97 * x[t - 1] + noise[t]
    assert pairwise(x, ordered=True).independent
    assert not pairwise(x * np.repeat(rng.exponential(size=400), 50)[:, None], ordered=True).independent


def test_a_volatility_that_all_share_is_seen_in_few_rows_of_a_series():
    """No pair shows it in 800 rows; of sources with volatilities of their own few are called dependent."""

    def told(common, seed):
        rng = np.random.default_rng(seed)
        size = series("Gaussian", 800, seed, np.full(1 if common else 4, 0.97), 0.4)
        coloured = series("laplace", 800, seed + 100, np.full(4, 0.5), 1.0)
        return not pairwise(
            coloured * np.exp(size) + 1e-3 * rng.normal(size=(800, 4)), ordered=True
        ).independent

    assert sum(told(True, seed) for seed in range(20)) >= 16
    assert sum(told(False, seed) for seed in range(20)) <= 4


def test_independent_samples_whose_size_changes_slowly_are_not_called_dependent():
    """Rows like returns: neighbours are uncorrelated, and large samples stand together."""
    rng = np.random.default_rng(0)
    noise, size = rng.normal(size=(20_000, 4)), np.zeros((20_000, 4))
    for t in range(1, len(size)):
        size[t] = 0.997 * size[t - 1] + 0.08 * noise[t]
    laplace = rng.laplace(size=size.shape)
    assert pairwise(np.exp(size) * laplace).independent
    assert not pairwise(np.exp(size[:, :1]) * laplace).independent


def test_shares_of_the_rows_give_the_test_of_all_rows():
    Y = ALL["laplace"](np.random.default_rng(0), (960, 4))
    Y[:, 1] *= 1 + np.abs(Y[:, 0])
    w = np.random.default_rng(1).integers(0, 3, 960).astype(float)
    alone = dependence(Rows.of(Y, w), np.eye(4))
    ordered = dependence(Rows.of(Y, w), np.eye(4), ordered=True)

    def share(rank):
        mine = slice(240 * rank, 240 * (rank + 1))
        rows = Rows.of(Y[mine], w[mine])
        return dependence(rows, np.eye(4)), dependence(rows, np.eye(4), ordered=True)

    for one, by_group in on_ranks(4, share):
        np.testing.assert_allclose(one.statistic, alone.statistic, atol=1e-9)
        np.testing.assert_allclose(by_group.correlation, ordered.correlation, atol=1e-9)
        assert by_group.pairs() == ordered.pairs() == [(0, 1)]


@pytest.mark.parametrize("kind", every(["laplace", "three-valued", "two-valued, P = .05"], ["three-valued"]))
def test_independent_sources_are_solved_at_tau_one(kind):
    X, E = planted(kind, 1000, 3)
    Y, P = projected(X, 5)
    chosen = answered(Y)
    assert chosen.test.independent and chosen.result.tau == LIKELIHOOD
    assert matched(P @ chosen.result.R, E) > 0.99


def standardised(X):
    X = X - X.mean(0)
    keep = X.std(0) > 0
    return X[:, keep] / X.std(0)[keep]


def test_dependent_components_of_a_real_table_are_solved_at_a_cautious_tau():
    chosen = answered(projected(standardised(load_breast_cancer().data), 6)[0])
    assert not chosen.test.independent and chosen.result.tau == CAUTIOUS


def test_dependence_that_no_pair_shows_is_seen_in_all_pairs_together():
    """Halves of a real table, 89 rows each: the sum over the pairs sees what single pairs often do not."""
    X = standardised(load_wine().data)
    parts = [np.random.default_rng(seed).permutation(len(X))[:89] for seed in range(8)]
    halves = [projected(X[part], 4)[0] for part in parts]
    found = [answered(Y, LIKELIHOOD) for Y in halves]
    assert sum(not one.test.pairs() for one in found) >= 2
    assert sum(one.test.is_spread for one in found) >= 6
    chosen = [answered(Y).result.tau == LIKELIHOOD for Y in halves]
    assert chosen == [one.test.independent for one in found]


def test_a_minimum_that_is_not_at_the_sources_shows_in_the_test():
    """Two-valued sources of P = .05 have a second minimum, which one start of PCA may end in."""
    X, _ = planted("two-valued, P = .05", 1000, 16)
    Y, _ = projected(X, 5)
    ends = [solve(Y, starts=count) for count in (1, 4)]
    tests = [dependence(Rows.of(Y), end.R) for end in ends]
    assert all(
        test.independent == (end.value <= ends[1].value + 1e-6) for test, end in zip(tests, ends, strict=True)
    )
