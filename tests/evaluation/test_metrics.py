"""Metrics against known values, invariances and the peers that compute the same numbers."""

import numpy as np
import pytest
from solver_helpers import orthonormal

from sigmapca_cli.evaluation import metrics
from sigmapca_cli.evaluation.agreement import matched_cosine


@pytest.fixture
def data():
    generator = np.random.default_rng(3)
    x = generator.laplace(size=(4000, 6)) @ generator.standard_normal((6, 6))
    x -= x.mean(axis=0)
    return x, x.T @ x / len(x)


def test_reconstruction_error_is_the_mean_over_the_rows(data):
    x, C = data
    W = np.random.default_rng(1).standard_normal((6, 3))
    assert metrics.reconstruction_error(W, C) == pytest.approx(
        np.mean(np.sum((x - x @ W @ W.T) ** 2, axis=1))
    )


def test_explained_variance_equals_scikit_learn_and_ignores_the_basis(data):
    from sklearn.decomposition import PCA

    x, C = data
    peer = PCA(3).fit(x)
    W = peer.components_.T
    mixed = W @ np.random.default_rng(0).standard_normal((3, 3))
    assert metrics.explained_variance(W, C) == pytest.approx(peer.explained_variance_ratio_.sum())
    assert metrics.explained_variance(mixed, C) == pytest.approx(peer.explained_variance_ratio_.sum())
    assert metrics.explained_variance(orthonormal(6, 3), C) < peer.explained_variance_ratio_.sum()


def test_explained_variance_survives_tiny_scales_rank_deficiency_and_constants(data):
    _, C = data
    W = orthonormal(6, 3)
    assert metrics.explained_variance(W, C * 1e-20) == pytest.approx(metrics.explained_variance(W, C))
    duplicated = np.hstack([W, W])
    assert metrics.explained_variance(duplicated, C) == pytest.approx(metrics.explained_variance(W, C))
    assert metrics.explained_variance(W, np.zeros((6, 6))) == 0


def test_norm_and_orthogonality_errors():
    W = orthonormal(5, 3)
    assert metrics.orthogonality_error(W) < 1e-12
    assert metrics.unit_norm_error(W) < 1e-12
    W[:, 1] *= 1.5
    assert metrics.unit_norm_error(W) == pytest.approx(0.5)
    assert metrics.orthogonality_error(W) == pytest.approx(1.25)


def test_sigma_error_is_relative_and_exact_on_the_biased_std(data):
    x, C = data
    W = orthonormal(6, 2)
    std = (x @ W).std(axis=0)
    assert metrics.sigma_error(std, W, C) < 1e-12
    assert metrics.sigma_error(std * [1, 1.1], W, C) == pytest.approx(0.1)
    assert metrics.sigma_error(std * 1e-9, W, C * 1e-18) < 1e-9


def test_component_std_is_that_of_the_solution(data):
    """Two copies: they round differently, and stored runs hold the bits of both."""
    from sigmapca_cli.methods.solution import deviations

    _, C = data
    W = orthonormal(6, 3)
    np.testing.assert_allclose(metrics.component_std(W, C), deviations(W, C), rtol=1e-12)


def test_kurtosis_equals_scipy(data):
    from scipy.stats import kurtosis

    x, _ = data
    np.testing.assert_allclose(metrics.kurtosis(x * 1e-8 + 3), kurtosis(x, axis=0), rtol=1e-4)
    np.testing.assert_allclose(metrics.kurtosis(x * 1e-100), kurtosis(x, axis=0), rtol=1e-12)
    assert metrics.kurtosis(np.ones((5, 1)))[0] == 0


def test_negentropy_constant_is_that_of_a_standard_normal():
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    expected = (weights @ metrics.log_cosh(nodes)) / np.sqrt(2 * np.pi)
    assert pytest.approx(expected, abs=1e-9) == metrics.LOG_COSH_OF_GAUSSIAN
    generator = np.random.default_rng(0)
    y = np.stack([generator.standard_normal(50_000), generator.laplace(size=50_000)], axis=1)
    gaussian, laplace = metrics.negentropy(y)
    assert gaussian < 1e-5 < laplace
    assert np.isfinite(metrics.log_cosh(np.array([1e4, -1e4]))).all()


def test_correlation_of_principal_components_is_zero(data):
    x, C = data
    V = np.linalg.eigh(C)[1]
    assert metrics.correlation(V, C) < 1e-10
    W = orthonormal(6, 3)
    R = np.corrcoef((x @ W).T)
    assert metrics.correlation(W, C) == pytest.approx(np.abs(R - np.eye(3)).max())
    assert metrics.correlation(W[:, :1], C) == 0


def test_mcc_ignores_sign_order_and_scale():
    A = orthonormal(20, 5)
    B = A[:, [3, 1, 0, 4, 2]] * [-1, 2, -3, 1e-6, 5]
    assert metrics.mcc(A, B) == pytest.approx(1)
    x = np.random.default_rng(0).standard_normal((300, 20))
    assert metrics.mcc(x @ A + 7, x @ B, of="sources") == pytest.approx(1)
    assert metrics.mcc(A, B[:, :2]) == pytest.approx(1)
    assert metrics.mcc(A, orthonormal(20, 5, seed=1)) < 0.7


def test_matching_is_one_to_one():
    similarity = np.array([[0.9, 0.8], [0.85, 0.1]])
    rows, columns = metrics.match(similarity)
    assert list(zip(rows, columns, strict=True)) == [(0, 1), (1, 0)]


def test_amari_known_values():
    c = np.sqrt(0.5)
    assert metrics.amari([[1, 0.5], [0.5, 1]]) == pytest.approx(0.5)
    assert metrics.amari([[c, -c], [c, c]]) == pytest.approx(1)
    assert metrics.amari(np.eye(4)[[2, 0, 3, 1]] * [[1], [-2], [3], [4]]) == 0
    assert metrics.amari([[1.0]]) == 0
    assert metrics.amari(np.ones((5, 5))) == pytest.approx(1)
    assert metrics.amari(np.zeros((2, 2))) == pytest.approx(1)


def test_chance_levels_are_the_known_ones():
    assert matched_cosine(32, 32) == pytest.approx(0.402, abs=0.01)
    assert matched_cosine(363, 32) == pytest.approx(0.115, abs=0.005)
