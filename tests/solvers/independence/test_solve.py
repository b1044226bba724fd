"""The minimum of C_τ is at the sources, of every kind; it is linear PCA for τ = 0 and linear ICA on white rows."""

import numpy as np
import pytest
from mechanisms import every
from sklearn.decomposition import FastICA
from solver_helpers import matched, orthogonal
from source_kinds import ALL, KINDS, planted, projected
from thread_ranks import on_ranks

from sigmapca_cli.solvers.independence import descent
from sigmapca_cli.solvers.independence.contrast import Contrast
from sigmapca_cli.solvers.independence.curvature import Curvature
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import STARTING, SUPPORTING, solve
from sigmapca_cli.system.errors import InputError


def mixed(n, k, seed=0, equal=False):
    """Sources of all kinds in groups of five equal variances, or all of equal variance."""
    rng = np.random.default_rng(seed)
    kinds = list(KINDS.values())
    S = np.column_stack([kinds[j % len(kinds)](rng, n) for j in range(k)])
    S = S * (1.0 if equal else 3 * 0.7 ** (np.arange(k) // 5))
    E = orthogonal(k, seed)
    X = S @ E.T
    return X - X.mean(0), E


@pytest.mark.parametrize("kind", every(KINDS, ["laplace", "±1", "exponential", "Poisson(20)"]))
def test_independent_sources_of_every_kind_are_a_strict_minimum(kind):
    """At the sources the slope is zero but for sampling, and the curvature is positive in every direction."""
    n, sigma = 200_000, np.array([3, 3, 2.85, 1.8, 1.8])
    Y = KINDS[kind](np.random.default_rng(0), (n, 5)) * sigma
    rows = Rows.of(Y)
    point = Contrast(rows, 1.0).at(np.eye(5))
    H = Curvature(point, rows).whole()
    assert np.linalg.eigvalsh(H)[0] > 0
    assert np.abs(np.linalg.solve(H, point.gradient)).max() < 0.05


@pytest.mark.parametrize("kind", every(KINDS, ["laplace", "±1", "exponential", "Poisson(20)"]))
def test_the_sources_of_every_kind_are_found(kind):
    X, E = planted(kind, 2000, 1)
    Y, P = projected(X, 5)
    found = solve(Y)
    assert found.converged
    assert matched(P @ found.R, E) > (0.95 if kind == "Poisson(20)" else 0.995)


def test_tau_zero_is_linear_pca():
    X, _ = planted("laplace", 2000, 0)
    Y, _ = projected(X, 5)
    found = solve(Y, 0.0, start=orthogonal(5, 2))
    assert found.converged
    np.testing.assert_allclose(np.abs(found.R), np.eye(5), atol=1e-6)


def test_gaussian_sources_are_found_by_their_variances():
    X, E = planted("Gaussian", 5000, 0, sigma=(4, 3, 2, 1))
    Y, P = projected(X, 4)
    assert matched(P @ solve(Y).R, E) > 0.998


@pytest.mark.parametrize("kind", every(["laplace", "uniform", "±1"], ["laplace"]))
def test_white_rows_give_linear_ica(kind):
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng, (5000, 4)) @ rng.normal(size=(4, 4))
    Y, _ = projected(X - X.mean(0), 4)
    white = Y / Y.std(0)
    ica = FastICA(whiten="unit-variance", random_state=0, tol=1e-8, max_iter=1000).fit(X)
    other = np.linalg.pinv(ica.components_)
    mine = np.linalg.pinv(np.linalg.lstsq(X - X.mean(0), white @ solve(white).R, rcond=None)[0].T)
    assert matched(mine, other) > 0.999


def test_a_saddle_is_left():
    """Half-way between two equal sources the slope vanishes by symmetry, and the curvature is negative."""
    s = KINDS["±1"](np.random.default_rng(0), (4000, 2))
    both = np.concatenate([s, s * [1, -1], s[:, ::-1], s[:, ::-1] * [1, -1]])
    half = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    at_start = Contrast(Rows.of(both), 1.0).at(half)
    assert np.abs(at_start.gradient).max() < 1e-12
    assert Curvature(at_start, Rows.of(both)).diagonal[0] < 0
    found = solve(both, start=half)
    assert found.converged
    assert matched(found.R, np.eye(2)) > 0.9999


@pytest.mark.parametrize("k", every([20, 40], [20]))
def test_many_sources_of_all_kinds_are_found_from_pca(k):
    X, E = mixed(6000, k)
    Y, P = projected(X, k)
    found = solve(Y)
    assert found.converged
    assert matched(P @ found.R, E) > 0.998


def test_the_answer_on_many_rows_ends_on_all_of_them():
    X, E = mixed(3 * SUPPORTING[1], 6)
    Y, P = projected(X, 6)
    found = solve(Y.astype(np.float32))
    assert found.history[0][1] == STARTING[1] and found.history[-1][1] == len(Y)
    assert found.converged and found.angle <= 1e-6
    assert np.abs(Contrast(Rows.of(Y), 1.0).at(found.R).gradient).max() < 1e-5
    assert matched(P @ found.R, E) > 0.9995


def test_threads_do_not_change_a_bit():
    X, _ = mixed(3 * SUPPORTING[1], 6)
    one, two = (solve(projected(X, 6)[0], threads=count) for count in (1, 2))
    np.testing.assert_array_equal(one.R, two.R)


def test_several_starts_count_the_minima():
    X, _ = mixed(3000, 5, equal=True)
    found = solve(projected(X, 5)[0], starts=4)
    assert (found.minima, found.nearest) == (1, 1.0)
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(60, 6))
    assert solve(Y, starts=6).minima > 1


def test_a_lower_minimum_of_dependent_components_is_not_taken():
    """A rare two-valued source and a weak one: their sum and difference have a lower C, and are no sources."""
    rng = np.random.default_rng(0)
    Y = np.column_stack([KINDS["two-valued, P = .05"](rng, 4000) * 1.5, KINDS["laplace"](rng, 4000) * 0.3])
    half = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    wrong, right = solve(Y, start=half, starts=1), solve(Y, starts=1)
    assert wrong.value < right.value and matched(wrong.R, np.eye(2)) < 0.8
    assert matched(right.R, np.eye(2)) > 0.999
    both = solve(Y, start=half, starts=8)
    assert both.minima == 2 and both.value == pytest.approx(right.value)


def test_weights_are_repetitions():
    X, _ = planted("laplace", 1000, 0)
    Y, _ = projected(X, 5)
    w = np.random.default_rng(0).integers(0, 3, len(Y))
    once, often = solve(Y, weights=w), solve(np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(once.R, often.R, atol=1e-5)


def test_shares_of_the_rows_give_the_answer_of_all_rows():
    X, _ = mixed(3000, 6)
    Y, _ = projected(X, 6)
    alone = solve(Y, threads=1)
    for found in on_ranks(3, lambda rank: solve(Y[1000 * rank : 1000 * (rank + 1)], threads=1)):
        np.testing.assert_allclose(found.R, alone.R, atol=1e-6)
        assert found.converged


@pytest.mark.parametrize("tau", [-1.0, np.nan, np.inf])
def test_a_weight_that_is_none_is_refused(tau):
    with pytest.raises(InputError):
        solve(planted("laplace", 100, 0)[0], tau)


def test_gaussian_rows_end_somewhere():
    Y = ALL["Gaussian"](np.random.default_rng(0), (1000, 6))
    assert np.isfinite(solve(Y).value)


def test_gaussian_components_beyond_some_work_turn_no_further(monkeypatch):
    """Nothing tells 24 of them of equal variance apart, and sources among them are found all the same."""
    monkeypatch.setattr(descent, "WORK", 0.0)
    rng = np.random.default_rng(0)
    S = np.column_stack([KINDS["laplace"](rng, (5000, 4)), rng.normal(size=(5000, 24))])
    E = orthogonal(28, 0)
    Y, P = projected(S @ E.T, 28)
    found = solve(Y, starts=1)
    cosine = np.abs(E[:, :4].T @ P @ found.R)
    assert found.converged and found.iterations < 60
    assert cosine.max(1).min() > 0.98
    only = projected(rng.normal(size=(3000, 24)), 24)[0]
    assert solve(only, starts=1).converged
