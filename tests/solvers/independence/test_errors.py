"""Standard errors cover the truth, and Gaussian components of equal variance are not called identified."""

import numpy as np
import pytest
from mechanisms import every
from source_kinds import ALL, series

from sigmapca_cli.solvers.independence.errors import errors
from sigmapca_cli.solvers.independence.rows import Rows
from sigmapca_cli.solvers.independence.solve import solve
from sigmapca_cli.solvers.independence.spectra import spectra_of
from sigmapca_cli.solvers.independence.stretches import widest

EQUAL = np.ones(4)


def covered(S, rotation, **options):
    """Whether each pair's angle to the truth lies in its interval, and whether the pair counts as identified."""
    Y = S @ rotation.T
    found = solve(Y, start=rotation, starts=1, threads=1)
    error = errors(Rows.of(Y), found.R, 1.0, **options)
    A = rotation.T @ found.R
    order = np.abs(A).argmax(1)
    A = A[:, order] * np.sign(np.diag(A[:, order]))
    i, j = np.triu_indices(len(A), 1)
    angle = error.angle[np.ix_(order, order)]
    inside = np.abs(A - A.T)[i, j] / 2 <= 1.96 * angle[i, j]
    return inside, error.identified[np.ix_(order, order)][i, j]


def coverage(make, repeats, **options):
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng((seed, 11))
        S = make(rng)
        found.append(covered(S, np.linalg.qr(rng.normal(size=(4, 4)))[0], **options))
    return np.mean([inside for inside, _ in found]), np.mean([identified for _, identified in found])


@pytest.mark.parametrize(
    "kind",
    every(
        ["laplace", "t, 3 df", "exponential", "uniform", "Poisson(2)", "two-valued, P = .25"], ["exponential"]
    ),
)
def test_intervals_cover_the_sources(kind):
    """40 tables, 240 angles: 95 % with a standard error of 2 %."""
    inside, identified = coverage(lambda rng: ALL[kind](rng, (1000, 4)) * [1.2, 1.1, 1, 1], 40)
    assert 0.88 < inside < 0.99
    assert identified > 0.97


@pytest.mark.full
def test_rows_in_time_need_groups():
    def make(rng):
        return series("laplace", 10_000, rng, np.full(4, 0.7), EQUAL)

    by_row, _ = coverage(make, 15)
    by_group, identified = coverage(make, 15, ordered=True)
    assert by_row < 0.9 < by_group
    assert identified > 0.9


@pytest.mark.parametrize("k", every([2, 4], [2]))
def test_gaussian_rows_of_equal_variance_are_not_identified(k):
    """60 tables: at most 5 % have a pair that counts as identified, with three standard deviations of room."""
    wrong = 0
    for seed in range(60):
        Y = np.random.default_rng((seed, k)).normal(size=(500, k))
        found = solve(Y, starts=1, threads=1, tol=1e-4)
        error = errors(Rows.of(Y), found.R, 1.0)
        told = error.identified[np.triu_indices(k, 1)]
        wrong += told.any()
        assert (error.angle[np.triu_indices(k, 1)][~told] == np.pi / 2).all()
    assert wrong <= 8


def test_one_gaussian_component_is_identified_by_the_others_and_two_are_not():
    rng = np.random.default_rng(0)
    S = np.column_stack([rng.laplace(size=(5000, 2)) / np.sqrt(2), rng.normal(size=(5000, 2))])
    found = solve(S)
    error = errors(Rows.of(S), found.R, 1.0)
    which = np.abs(found.R).argmax(0)
    gaussian = np.flatnonzero(which >= 2)
    others = np.flatnonzero(which < 2)
    assert not error.identified[gaussian[0], gaussian[1]]
    assert error.identified[others].all()
    assert (error.filter_error[gaussian] == np.pi / 2).all() and (error.filter_error[others] < 0.1).all()
    assert (error.shape[others] > error.shape[gaussian].max()).all()


def test_distinct_variances_identify_gaussian_rows():
    Y = np.random.default_rng(0).normal(size=(5000, 3)) * [3, 2, 1]
    error = errors(Rows.of(Y), solve(Y).R, 1.0)
    assert error.identified.all() and (error.filter_error < 0.1).all()
    only_pca = errors(Rows.of(Y), solve(Y, 0.0).R, 0.0)
    # the textbook error of an eigenvector: σ_iσ_j/(σ_i² − σ_j²)/√n
    assert only_pca.angle[0, 1] == pytest.approx(6 / 5 / np.sqrt(5000), rel=0.1)


def test_many_components_take_pairs_alone():
    """Above 16 components the errors of pairs are those of each alone: about the same for independent ones."""
    Y = ALL["laplace"](np.random.default_rng(0), (4000, 18))
    some = errors(Rows.of(Y[:, :10]), np.eye(10), 1.0)
    many = errors(Rows.of(Y), np.eye(18), 1.0)
    np.testing.assert_allclose(many.angle[:10, :10], some.angle, rtol=0.25)


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_series_of_one_spectrum_are_not_identified_and_others_are(phi):
    told = []
    for seed in range(10):
        S = series("Gaussian", 2000, seed, np.full(4, phi), np.ones(4))
        spectra = spectra_of(S)
        R = solve(S, spectra=spectra, starts=1).R
        told.append(errors(Rows.of(S), R, 1.0, ordered=True, spectra=spectra).identified[0, 1:].any())
    assert sum(told) <= 2
    S = series("Gaussian", 2000, 0, np.array([0.9, 0.5, 0.0, -0.5]), np.ones(4))
    spectra = spectra_of(S)
    found = errors(Rows.of(S), solve(S, spectra=spectra).R, 1.0, ordered=True, spectra=spectra)
    assert found.identified.all() and 0 < found.filter_error.max() < 0.1
    assert not errors(Rows.of(S), solve(S, spectra=spectra).R, 1.0, ordered=True).identified[0, 1:].all()


def test_stretches_widen_until_the_spread_grows_no_more():
    slow = series("Gaussian", 3000, 0, np.full(3, 0.95), 1.0).reshape(60, 50, 3).sum(1)
    fast = np.random.default_rng(0).normal(size=(60, 30))
    assert widest(slow, np.tile(slow, 5), True)[2] < widest(fast, fast, True)[2] == 60


@pytest.mark.parametrize(("n", "k"), every([(50, 45), (60, 20)], [(60, 20)]))
def test_noise_of_few_rows_has_no_axes(n, k):
    """Sample variances of as many directions as rows spread widely by chance; some rotation of them has any shape."""
    wrong = 0
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(n, k))
        X -= X.mean(0)
        Y = X @ np.linalg.svd(X, full_matrices=False)[2].T
        told = errors(Rows.of(Y), solve(Y, threads=1).R, 1.0).identified
        wrong += told[np.triu_indices(k, 1)].mean() > 0.01
    assert wrong <= 1
