"""Paths over τ and a: where halves agree and where they do not, jumps, and the choice of λ."""

import numpy as np
import pytest
from mechanisms import every
from solver_helpers import components, orthogonal, sources

from sigmapca_cli.solvers import knots as measured
from sigmapca_cli.solvers import path
from sigmapca_cli.solvers.fourth_moments import choose
from sigmapca_cli.solvers.fourth_moments.maximum import maximise


def halves(kind, n=20_000, k=6, group=3):
    """Two samples of one distribution, each on its own principal axes."""
    found = []
    for seed in (0, 1):
        S = sources(kind, n, k, group, seed)
        X = S @ orthogonal(12, 9)[:, :k].T + 0.05 * np.random.default_rng(seed).normal(size=(n, 12))
        X -= X.mean(0)
        P = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :k]
        found.append((P, X @ P))
    return found


def test_halves_agree_along_the_path_where_pca_does_not():
    both = halves("mixed")
    knots = list(path.over_tau(both))
    assert [knot.at for knot in knots] == list(path.TAUS) and all(knot.converged for knot in knots)
    assert measured.agreement(both, None) < 0.95 < 0.997 < min(knot.agreement for knot in knots)
    assert measured.span(both) > 0.999
    assert measured.good(knots) == knots
    # the first knot leaves the accidents of linear PCA; after that nothing branches
    assert min(knots[0].jumps) > 0 and all(knot.jumps == (0, 0) for knot in knots[1:])


def test_gaussian_groups_agree_nowhere_and_no_knot_is_praised_for_it():
    rng = np.random.default_rng(0)
    both = []
    for _ in range(2):
        Y = rng.normal(size=(5000, 6))
        V = np.linalg.eigh(np.cov(Y.T))[1]
        both.append((V, Y @ V))
    knots = list(path.over_tau(both))
    assert max(knot.agreement for knot in knots) < 0.9


def test_a_path_over_a_ends_where_newton_ends():
    both = halves("laplace")
    knots = list(path.over_a(both, (np.inf, 8.0, 4.0, 3.0)))
    assert all(knot.converged and knot.agreement > 0.998 and knot.jumps == (0, 0) for knot in knots)


def test_a_jump_is_counted():
    """From one a to the next the filters go elsewhere: light tails leave their axes at a large a."""
    both = halves("uniform")
    knots = list(path.over_a(both, (0.8, 4.0)))
    assert knots[0].jumps == (0, 0) and min(knots[1].jumps) > 0


def test_good_knots_have_no_gap():
    def knot(at, agreement):
        return measured.Knot(at, agreement, (0, 0), True)

    knots = [knot(1, 0.995), knot(2, 0.9), knot(3, 0.992), knot(4, 0.999), knot(5, 0.98)]
    assert measured.best(knots).at == 4
    assert [found.at for found in measured.good(knots)] == [3, 4]


@pytest.mark.parametrize("kind", every(["laplace", "uniform"], ["laplace"]))
def test_lam_is_chosen_near_a_tenth_where_nothing_speaks_against_it(kind):
    Y, _ = components(sources(kind, 20_000, 6, 3), p=20)
    lam, agreement = choose.chosen_lam(Y)
    assert lam == 0.1 and agreement > 0.998


def test_lam_is_chosen_smaller_where_variance_says_more():
    """Rare bursts carry the cumulants of Gaussian components of distinct variance: only a small λ keeps the halves."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(20_000, 6)) * [1.5, 1.4, 1.3, 1.2, 1.1, 1.0]
    Y[rng.choice(20_000, 40, replace=False)] *= 5
    Y = (Y - Y.mean(0)) @ np.linalg.eigh(np.cov(Y.T))[1][:, ::-1]
    lam, agreement = choose.chosen_lam(Y)
    part = np.arange(20_000) * choose.STRETCHES // 20_000 % 2
    fixed = [(np.eye(6), Y[part == half]) for half in (0, 1)]
    at_a_tenth = measured.agreement(fixed, [maximise(half).R for _, half in fixed])
    assert lam < 0.1 and agreement > at_a_tenth + measured.CLOSE
