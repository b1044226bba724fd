"""evaluate_solution on a source whose rows and truth are at hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from sigmapca_cli.data.moments.covariance import axes_of
from sigmapca_cli.evaluation import evaluate_solution, metrics


class Rows:
    """The interface of a data source over an array in memory."""

    def __init__(self, x, truth=None):
        self.x, self.n, self.p, self.truth = x.astype(np.float32), *x.shape, truth

    def covariance(self):
        x = self.x.astype(np.float64)
        mean = x.mean(axis=0)
        return mean, (x - mean).T @ (x - mean) / len(x)

    def leading_axes(self, k):
        return axes_of(self.covariance()[1], k)

    sample = None

    def project(self, B, rows=None, size=7):
        for x in self.blocks():
            yield x.astype(B.dtype, copy=False) @ B

    def blocks(self, size=7):
        for start in range(0, self.n, size):
            yield self.x[start : start + size]


@pytest.fixture
def planted():
    generator = np.random.default_rng(0)
    E = np.linalg.qr(generator.standard_normal((10, 4)))[0]
    s = generator.laplace(size=(2003, 4))
    return s, E, s @ E.T + 0.01 * generator.standard_normal((2003, 10)) + 0.3


def test_streamed_numbers_equal_those_of_the_whole_array(planted):
    s, E, x = planted
    source = Rows(x, SimpleNamespace(kind="filters", filters=E, sources=s, mixing=None))
    y = source.x.astype(np.float64) @ E
    result = evaluate_solution(E, y.std(axis=0), None, source)
    np.testing.assert_allclose(result["kurtosis"], stats.kurtosis(y), rtol=1e-6)
    np.testing.assert_allclose(result["kurtosis"], metrics.kurtosis(y), rtol=1e-6)
    z = (y - y.mean(0)) / y.std(0)
    gap = np.log(np.cosh(z)).mean(0) - 0.37456720749143807  # E[log cosh ν] of a standard normal ν
    np.testing.assert_allclose(result["negentropy"], gap**2, rtol=1e-4)
    assert result["sigma_error"] < 1e-9
    assert result["mcc"] == pytest.approx(1)
    assert result["amari"] < 1e-6
    assert result["mcc_chance"] < 0.8
    eigenvalues = np.linalg.eigvalsh(source.covariance()[1])[::-1][:4]
    np.testing.assert_allclose(result["pca_sigma"], np.sqrt(eigenvalues))


def test_sources_are_matched_by_correlation_whatever_the_encoder_scale_and_order(planted):
    s, E, x = planted
    source = Rows(x, SimpleNamespace(kind="sources", filters=None, sources=s, mixing=E))
    good = evaluate_solution(E, np.ones(4), E[:, ::-1] * [1, -2, 3, -4], source)
    assert good["mcc"] > 0.999 and good["truth_similarity"].shape == (4,)
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((4, 4)))[0]
    mixed = evaluate_solution(E, np.ones(4), E @ rotation, source)
    assert mixed["mcc"] < 0.95 and mixed["amari"] > good["amari"]
    expected = np.abs(np.corrcoef((x @ E @ rotation).T, s.T)[:4, 4:])
    assert mixed["truth_similarity"].max() <= expected.max() + 1e-6


def test_true_filters_are_compared_with_the_directions_of_the_components_not_with_those_before_a_rotation():
    generator = np.random.default_rng(2)
    E = np.linalg.qr(generator.standard_normal((6, 3)))[0]
    s = generator.laplace(size=(4000, 3))
    source = Rows(s @ E.T, SimpleNamespace(kind="filters", filters=E, sources=s, mixing=None))
    values, vectors = np.linalg.eigh(source.covariance()[1])
    P, sigma = vectors[:, -3:], np.sqrt(values[-3:])
    ica = evaluate_solution(P, sigma, E / np.sqrt(np.diag(E.T @ source.covariance()[1] @ E)), source)
    pca = evaluate_solution(P, sigma, None, source)
    assert ica["mcc"] == pytest.approx(1) and ica["amari"] < 1e-6
    assert pca["mcc"] < 0.99 and pca["amari"] > 0.01


def test_without_a_truth_and_with_a_dead_component(planted):
    _, E, x = planted
    x[:, 9] = 0
    W = np.hstack([E[:, :2], np.eye(10)[:, 9:]])
    result = evaluate_solution(W, np.ones(3), None, Rows(x))
    assert "mcc" not in result
    assert result["kurtosis"][2] == 0 and result["negentropy"][2] == 0
    assert all(np.isfinite(v).all() for v in result.values())


def test_chance_for_sources_is_what_random_rotations_of_them_reach():
    generator = np.random.default_rng(1)
    s = generator.uniform(-1, 1, size=(4000, 3))
    source = Rows(s, SimpleNamespace(kind="sources", filters=None, sources=s, mixing=np.eye(3)))
    rotations = [np.linalg.qr(generator.standard_normal((3, 3)))[0] for _ in range(40)]
    found = [evaluate_solution(R, np.ones(3), None, source) for R in rotations]
    assert found[0]["mcc_chance"] == pytest.approx(np.mean([each["mcc"] for each in found]), abs=0.06)
