"""Rows in time: components of equal variance and Gaussian shape are told apart by their spectra."""

import numpy as np
import pytest
from solver_helpers import matched, orthogonal
from source_kinds import ALL, SERIES_SIGMA, projected, series

from sigmapca_cli.solvers.independence.solve import solve
from sigmapca_cli.solvers.independence.spectra import spectra_of
from sigmapca_cli.system.errors import InputError


def mixed(S, seed=0):
    E = orthogonal(S.shape[1] + 3, seed)[:, : S.shape[1]]
    X = S @ E.T + 0.05 * np.random.default_rng(seed).normal(size=(len(S), len(E)))
    return X - X.mean(0), E


@pytest.mark.parametrize("kind", ["Gaussian", "laplace"])
def test_series_of_equal_variance_are_found(kind):
    X, E = mixed(series(kind, 10_000, 1))
    Y, P = projected(X, 5)
    found = solve(Y, spectra=spectra_of(Y))
    assert found.converged
    assert matched(P @ found.R, E) > 0.999
    assert matched(P @ solve(Y).R, E) < (0.95 if kind == "Gaussian" else 1)


def test_white_rows_lose_nothing():
    X, E = mixed(ALL["laplace"](np.random.default_rng(0), (10_000, 5)) * SERIES_SIGMA)
    Y, P = projected(X, 5)
    assert matched(P @ solve(Y, spectra=spectra_of(Y)).R, E) > 0.9995
    S = spectra_of(Y)
    np.testing.assert_allclose(S.mean(0), Y.T @ Y / len(Y), atol=0.1)


def test_white_gaussian_rows_of_distinct_variances_are_still_pca():
    Y = np.random.default_rng(0).normal(size=(10_000, 4)) * [4, 3, 2, 1]
    assert matched(solve(Y, spectra=spectra_of(Y)).R, np.eye(4)) > 0.999


def test_no_segment_joins_two_pieces():
    """The order of the pieces does not matter; without their edges the spectra are others."""
    Y = series("Gaussian", 4000, 0)
    pieces = [1000, 1500, 2750]
    S = spectra_of(Y, pieces)
    shifted = [Y[:1000], Y[1000:1500], Y[1500:2750], Y[2750:]]
    again = spectra_of(np.concatenate([shifted[2], shifted[0], shifted[3], shifted[1]]), [1250, 2250, 3500])
    np.testing.assert_allclose(again, S, rtol=1e-10, atol=1e-12)
    assert np.abs(spectra_of(Y) - S).max() > 1e-6


def test_pieces_that_are_too_short_or_outside_are_refused():
    Y = series("Gaussian", 200, 0)
    with pytest.raises(InputError):
        spectra_of(Y, range(0, 200, 20))
    with pytest.raises(InputError):
        spectra_of(Y, [500])
    assert spectra_of(Y, [100]).shape[1:] == (5, 5)
