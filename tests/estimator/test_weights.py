"""Weights of rows are weights: in mean, variances, axes and in what each solver minimises, by any solver."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight

from sigmapca_cli.evaluation.metrics import mcc
from sigmapca_cli.sklearn import SigmaPCA

EXACT = [{}, {"a": 4.0}, {"a": "auto"}, {"lam": 0.1}]
SGD = {"solver": "sgd", "a": 4.0, "max_iter": 30, "random_state": 0}
SAME = ("components_", "sigma_", "mean_", "explained_variance_ratio_")


def planted(n=1500, p=8, seed=0):
    """Laplace sources in two groups of equal variance."""
    g = np.random.default_rng(seed)
    s = g.laplace(size=(n, 4)) / np.sqrt(2) * [3, 1.5, 3, 1.5]
    E = np.linalg.qr(g.standard_normal((p, 4)))[0]
    return s @ E.T + 0.02 * g.standard_normal((n, p)) + 5, E


def repeated_rows(rows, counts):
    """Rows repeated, in an order of chance: equal neighbours would look like a series in time."""
    return np.random.default_rng(3).permutation(np.repeat(rows, counts, axis=0))


X, E = planted()
COUNTS = np.random.default_rng(1).integers(0, 4, len(X))


@pytest.mark.parametrize("settings", EXACT, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_weights_are_any_numbers(settings, form):
    whole = SigmaPCA(4, **settings).fit(form(X), sample_weight=COUNTS)
    for factor in (1 / COUNTS.sum(), 0.1, 3e8):
        found = SigmaPCA(4, **settings).fit(form(X), sample_weight=COUNTS * factor)
        for name in SAME:
            np.testing.assert_allclose(
                getattr(found, name), getattr(whole, name), rtol=0, atol=1e-12, err_msg=name
            )
    # rows that are repeated are no independent rows, which the choice of tau asks for
    given = {**settings, "tau": whole.tau_} if whole.tau_ is not None else settings
    repeated = SigmaPCA(4, **given).fit(repeated_rows(X, COUNTS))
    np.testing.assert_allclose(whole.components_, repeated.components_, atol=1e-5)
    np.testing.assert_allclose(whole.sigma_, repeated.sigma_, rtol=1e-6)
    np.testing.assert_allclose(whole.mean_, repeated.mean_, rtol=1e-12)
    equal, none = SigmaPCA(4, **settings).fit(form(X), sample_weight=0.3), SigmaPCA(4, **settings).fit(X)
    np.testing.assert_allclose(equal.components_, none.components_, atol=1e-7)


@pytest.mark.parametrize("settings", EXACT, ids=str)
def test_odd_weights_are_those_of_the_moments(settings):
    weights = np.random.default_rng(2).exponential(size=len(X))
    found = SigmaPCA(4, **settings).fit(X, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(found.mean_, mean, rtol=1e-12)
    variance = np.average(np.square((X - mean) @ found.components_.T), axis=0, weights=weights)
    np.testing.assert_allclose(found.explained_variance_, variance, rtol=1e-10)
    assert mcc(found.components_.T, E) > 0.99


@pytest.mark.parametrize("settings", [*EXACT, SGD], ids=str)
def test_one_row_of_a_great_weight_is_no_repetition(settings):
    weights = np.r_[3e8, np.ones(len(X) - 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = SigmaPCA(2, **settings).fit(X, sample_weight=weights)
    np.testing.assert_allclose(one.mean_, X[0], atol=1e-3)
    assert np.isfinite(one.components_).all()


def test_classes_in_balance():
    y = np.arange(len(X)) % 10 == 0
    weights = compute_sample_weight("balanced", y)
    found = SigmaPCA(4, a=4.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.mean_, (X[y].mean(0) + X[~y].mean(0)) / 2, rtol=1e-12)


@pytest.mark.parametrize("settings", [*EXACT, SGD], ids=str)
def test_weights_that_are_none_are_refused(settings):
    for bad in (-COUNTS, np.full(len(X), np.nan), np.ones(3), np.zeros(len(X)), ["a"] * len(X)):
        with pytest.raises(ValueError, match="sample_weight"):
            SigmaPCA(4, **settings).fit(X, sample_weight=bad)


def test_sgd_draws_rows_by_their_weights():
    """Half of the rows have their axes elsewhere, and next to no weight."""
    other, _ = planted(seed=7)
    rows, weights = np.concatenate([X, other]), np.r_[np.ones(len(X)), np.full(len(other), 1e-9)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = SigmaPCA(4, **SGD).fit(rows, sample_weight=weights)
        same = SigmaPCA(4, **SGD).fit(X, sample_weight=np.full(len(X), 0.7))
        assert mcc(found.components_.T, E) > 0.99
        np.testing.assert_allclose(same.components_, SigmaPCA(4, **SGD).fit(X).components_, atol=1e-6)


def test_weights_of_many_components():
    """Beyond 64 components the cumulants are summed anew at each step, and beyond 40 Jacobians are products."""
    g = np.random.default_rng(0)
    rows = g.laplace(size=(3000, 66)) * np.linspace(2, 1, 66)
    counts = g.integers(1, 3, len(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for settings in ({"lam": 0.1, "max_iter": 3}, {"a": 4.0, "max_iter": 8}):
            found = SigmaPCA(**settings).fit(rows, sample_weight=counts * 0.37)
            peer = SigmaPCA(**settings).fit(repeated_rows(rows, counts))
            np.testing.assert_allclose(found.components_, peer.components_, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("n", [80, pytest.param(1200, marks=pytest.mark.full)], ids=["few rows", "many rows"])
def test_weights_of_many_features(form, n):
    g = np.random.default_rng(0)
    wide = g.laplace(size=(n, 2)) * [4, 2] @ g.standard_normal((2, 2500)) + 0.01 * g.standard_normal(
        (n, 2500)
    )
    weights = g.integers(1, 4, n)
    found, peer = (
        SigmaPCA(2, tau=1).fit(form(wide), sample_weight=weights * 0.3),
        SigmaPCA(2, tau=1).fit(repeated_rows(wide, weights)),
    )
    np.testing.assert_allclose(np.abs((found.components_ * peer.components_).sum(1)), 1, atol=1e-6)
    np.testing.assert_allclose(found.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-6)
    np.testing.assert_allclose(found.mean_, peer.mean_, atol=1e-10)


@pytest.mark.parametrize("settings", EXACT, ids=str)
def test_parts_with_weights_are_the_whole_with_weights(settings):
    weights = np.random.default_rng(2).exponential(size=len(X))
    whole = SigmaPCA(4, **settings).fit(X, sample_weight=weights)
    parts = SigmaPCA(4, **settings).fit(X[:900], sample_weight=weights[:900])
    parts.partial_fit(X[900:], sample_weight=weights[900:])
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-4)
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-10)
    np.testing.assert_allclose(parts.sigma_, whole.sigma_, rtol=1e-4)
    mixed = SigmaPCA(4, **settings).partial_fit(X[:900]).partial_fit(X[900:], sample_weight=2)
    twice = SigmaPCA(4, **settings).fit(X, sample_weight=np.r_[np.ones(900), np.full(len(X) - 900, 2)])
    np.testing.assert_allclose(mixed.components_, twice.components_, atol=1e-4)


@pytest.mark.parametrize("settings", [*EXACT, SGD], ids=str)
def test_a_certificate_takes_the_weights_of_the_fit(settings):
    model = SigmaPCA(4, **{**settings, "max_iter": 3} if settings is SGD else settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, sample_weight=COUNTS)
    found = model.certificate(X, sample_weight=COUNTS)
    other = model.certificate(sparse.csr_matrix(X), sample_weight=COUNTS * 3e-8)  # only ratios count
    left = model.certificate(
        X[COUNTS > 0], sample_weight=COUNTS[COUNTS > 0]
    )  # rows without weight are not there
    for name in ("curvature", "error", "score", "kurtosis", "sigma"):
        for same in (other, left):
            np.testing.assert_allclose(
                getattr(same, name), getattr(found, name), rtol=1e-5, atol=1e-9, err_msg=name
            )
    repeated = model.certificate(np.repeat(X, COUNTS, axis=0))
    # solver=moments takes the sampling error from its curvatures, which is larger than that of repeated rows
    np.testing.assert_allclose(found.curvature, repeated.curvature, rtol=5e-3 if "lam" in settings else 1e-6)
    np.testing.assert_allclose(found.kurtosis, repeated.kurtosis, rtol=1e-9)
    np.testing.assert_allclose(found.sigma, repeated.sigma, rtol=1e-9)
    assert found.n == np.count_nonzero(COUNTS) and (found.verdict == left.verdict).all()
    with pytest.raises(ValueError):
        model.certificate(X, sample_weight=-COUNTS)


@pytest.mark.parametrize("settings", EXACT[1:], ids=str)
def test_a_certificate_of_few_heavy_rows_is_less_sure(settings):
    model = SigmaPCA(4, **settings).fit(X)
    plain, equal = model.certificate(X), model.certificate(X, sample_weight=np.full(len(X), 0.3))
    np.testing.assert_allclose(equal.score, plain.score, rtol=1e-9)
    heavy = model.certificate(X, sample_weight=np.where(np.arange(len(X)) % 20, 1e-3, 1.0))
    upper = np.triu_indices(4, 1)
    assert np.median(heavy.error[upper] / plain.error[upper]) > 2
