"""Streamed moments, scale-free standardisation, whitening and rank."""

import numpy as np
import pytest

from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.moments.accumulate import (
    block_moments,
    check_k,
    rank_of,
    standardisation,
    streamed_moments,
)
from sigmapca_cli.data.moments.whitening import whitening_matrix
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


def test_merged_blocks_equal_the_whole():
    X = RNG.normal(size=(1000, 7)) @ RNG.normal(size=(7, 7)) + 5
    m = streamed_moments(np.split(X, [1, 3, 500, 999]))
    np.testing.assert_allclose(m.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.second, np.cov(X.T, bias=True), rtol=1e-10, atol=1e-12)
    d = streamed_moments(np.split(X, 10), diagonal=True)
    np.testing.assert_allclose(d.second, X.var(axis=0), rtol=1e-12)


def test_a_mean_far_from_zero_costs_no_variance():
    """float32, mean 1e5, std 1: the naive E[x²] − E[x]² in float32 loses everything (cases 11)."""
    X = (1e5 + RNG.normal(size=(20_000, 2))).astype(np.float32)
    exact = X.astype(np.float64).var(axis=0)
    m = streamed_moments(np.array_split(X, 13))
    np.testing.assert_allclose(m.second.diagonal(), exact, rtol=1e-9)
    source = MemorySource("test", X, Standardisation())
    np.testing.assert_allclose(source.take(np.arange(20_000)).var(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-7, 1e-3, 1e6])
@pytest.mark.parametrize("relative", [0.0, 0.01])
def test_standardised_rows_do_not_depend_on_the_unit(factor, relative):
    X = RNG.normal(size=(500, 4)) * [1, 2, 3, 0.5] + 1
    rows = [
        MemorySource("t", data, Standardisation(relative_epsilon=relative)).take(np.arange(500))
        for data in (X, X * factor)
    ]
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 + 0.1, -3e-8])
def test_constant_columns_are_exactly_zero(value):
    X = RNG.normal(size=(1001, 2))
    X[:, 1] = value
    source = MemorySource("t", X, Standardisation())
    assert np.all(source.take(np.arange(1001))[:, 1] == 0)
    assert source.scale[1] == 1 and not source.covariance()[1][1].any()


def test_epsilon_is_inside_the_root():
    scale, _ = standardisation(np.zeros(2), np.array([0.25, 4.0]), "feature", 1e-3, 0.5)
    np.testing.assert_allclose(scale, np.sqrt([0.251, 4.001]))


@pytest.mark.parametrize("kind", ["pca", "zca"])
def test_whitened_rows_are_white(kind):
    X = RNG.laplace(size=(3000, 5)) @ RNG.normal(size=(5, 5)) + 3
    source = MemorySource("t", X, Standardisation(whiten=kind))
    x = source.take(np.arange(3000)).astype(np.float64)
    np.testing.assert_allclose(x.T @ x / 3000, np.eye(5), atol=1e-4)
    np.testing.assert_allclose(source.covariance()[1], np.eye(5), atol=1e-9)
    raw = ((X - source.mean) / source.scale) @ source.whitening
    np.testing.assert_allclose(x, raw, atol=1e-4)


def test_zca_is_symmetric_and_drops_null_directions():
    A = RNG.normal(size=(6, 4))
    T = whitening_matrix(A @ A.T, "zca")
    np.testing.assert_allclose(T, T.T, atol=1e-10)
    np.testing.assert_allclose(np.linalg.eigvalsh(T @ A @ A.T @ T), [0, 0, 1, 1, 1, 1], atol=1e-9)


@pytest.mark.parametrize("whiten", ["none", "zca"])
def test_scale_input_multiplies_the_rows(whiten):
    # Well conditioned: whitening magnifies rounding by the condition number of the covariance.
    X = RNG.normal(size=(300, 4)) @ (np.eye(4) + 0.2 * RNG.normal(size=(4, 4)))
    one = MemorySource("t", X, Standardisation(whiten=whiten))
    thousand = MemorySource("t", X, Standardisation(whiten=whiten, scale_input=1000))
    index = np.arange(300)
    np.testing.assert_allclose(thousand.take(index), 1000 * one.take(index), rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(thousand.covariance()[1], 1e6 * one.covariance()[1], rtol=1e-9, atol=1e-5)
    assert one.hash != thousand.hash


@pytest.mark.parametrize("scale", [1e-14, 1.0, 1e14])
def test_rank_does_not_depend_on_the_scale(scale):
    A = RNG.normal(size=(30, 8)) * np.sqrt(scale)
    assert rank_of(np.linalg.eigvalsh(A @ A.T)) == 8
    assert rank_of(np.linalg.eigvalsh(np.eye(5) * scale)) == 5
    assert rank_of(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "at least 1"),
        (11, r"11 is more than min\(n, p\) = 10"),
        (8, "8 is more than the numerical rank 7"),
    ],
)
def test_k_that_does_not_fit_is_refused_with_both_numbers(k, message):
    with pytest.raises(InputError, match=message):
        check_k(k, 100, 10, 7)
    check_k(7, 100, 10, 7)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("size", "words"), [(1e300, "too large"), (1e100, "too large"), (1e-160, "too small")]
)
def test_values_beyond_float32_are_refused_without_warnings(size, words):
    moments = block_moments(np.array([[1.0, size], [2.0, -size]]), diagonal=True)
    with pytest.raises(InputError, match=f"feature 1, counted from 0, are {words}"):
        standardisation(moments.mean, moments.second, "feature", None, 0.0)


@pytest.mark.parametrize("size", [1e-12, 1e-7, 1.0, 1e7, 1e12])
def test_data_that_are_only_centred_keep_their_directions_in_any_unit(size):
    x = np.random.default_rng(0).normal(size=(200, 3)) * [1, 2, 3]
    scale, _ = standardisation(x.mean(axis=0) * size, x.var(axis=0) * size**2, "none", None, 0.0)
    assert (np.ptp(scale) == 0 and 0.1 < size / scale[0] < 10) or scale[0] == 1
    assert (scale[0] == 1) == (1e-8 < size < 1e8)


@pytest.mark.parametrize("kind", ["pca", "zca"])
def test_whitening_by_the_leading_eigenvectors_leaves_their_number_of_directions(kind):
    X = RNG.normal(size=(500, 6)) * np.linspace(3, 1, 6)
    X -= X.mean(0)
    T = whitening_matrix(X.T @ X / len(X), kind, 4)
    values = np.linalg.eigvalsh(T.T @ (X.T @ X / len(X)) @ T)[::-1]
    np.testing.assert_allclose(values, [1, 1, 1, 1, 0, 0], atol=1e-9)
    W = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :4]
    if kind == "zca":  # W_L Σ⁻¹ W_Lᵀ
        np.testing.assert_allclose(T, W / (X @ W).std(0) @ W.T, atol=1e-9)
    with pytest.raises(InputError, match=r"whiten_rank=7.*rank 6"):
        whitening_matrix(X.T @ X / len(X), kind, 7)


def test_rows_that_are_not_centred_keep_their_mean_and_say_so():
    X = (RNG.normal(size=(300, 4)) + np.array([5, -3, 0, 1])).astype(np.float32)
    centred = MemorySource("array", X, Standardisation("none"))
    kept = MemorySource("array", X, Standardisation("none", centre=False))
    np.testing.assert_allclose(kept.take(np.arange(300)), X, rtol=1e-6)
    mean, C = kept.covariance()
    np.testing.assert_allclose(mean, X.mean(0, np.float64), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(C, centred.covariance()[1], rtol=1e-12)
    assert not centred.covariance()[0].any() and kept.hash != centred.hash
    np.testing.assert_allclose(kept.divided(2.0).covariance()[0], mean / 2)
    white = MemorySource("array", X, Standardisation("none", whiten="zca", centre=False))
    np.testing.assert_allclose(white.covariance()[0], white.take(np.arange(300)).mean(0), atol=1e-5)


def test_options_that_are_younger_than_a_stored_hash_leave_it_alone():
    """The hash of data that stored runs carry is made of the five older options only."""
    assert repr(Standardisation("none")) == (
        "Standardisation(standardise='none', epsilon=None, relative_epsilon=0.0, whiten='none', scale_input=1.0)"
    )
    assert Standardisation("none").described == ""
