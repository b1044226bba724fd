"""The methods without a training loop, against scikit-learn and python-picard on the same rows."""

import logging
import sys

import numpy as np
import pytest
import torch
from methods_helpers import composed, matched, planted
from sklearn.decomposition import PCA, FactorAnalysis, FastICA

from sigmapca_cli.data.moments.covariance import axes_of
from sigmapca_cli.methods.method import make_method
from sigmapca_cli.system.errors import InputError

P, K = 10, 4


class Rows:
    """Rows in memory, as a Source gives them."""

    def __init__(self, x):
        self.x, (self.n, self.p) = x, x.shape

    def covariance(self):
        mean = self.x.mean(0)
        return mean, (self.x - mean).T @ (self.x - mean) / self.n

    def leading_axes(self, k):
        return axes_of(self.covariance()[1], k)

    def principal_axes(self):
        values, vectors = np.linalg.eigh(self.covariance()[1])
        return values[::-1], vectors[:, ::-1]

    def project(self, B, size=7):
        for x in self.blocks():
            yield x.astype(B.dtype, copy=False) @ B

    def blocks(self, size=700):
        for first in range(0, self.n, size):
            yield self.x[first : first + size].astype(np.float32)


@pytest.fixture(scope="module")
def data():
    x, E = planted(P, K, 2, "laplace", 6000, noise=0.05)
    return x.numpy(), E


def fitted(name, x, *overrides, k=K):
    cfg = composed(name, f"k={k}", *overrides)
    return make_method(cfg).fit(cfg, Rows(x))


def test_ppca_noise_equals_scikit_learn(data):
    x, _ = data
    solution, peer = fitted("ppca", x), PCA(K, svd_solver="full").fit(x)
    biased = peer.noise_variance_ * (len(x) - 1) / len(x)
    assert solution.extra["noise_variance"] == pytest.approx(biased)
    A = solution.extra["loadings"]
    model = A.T @ A + biased * np.eye(P)
    np.testing.assert_allclose(model, peer.get_covariance() * (len(x) - 1) / len(x), atol=1e-10)


def test_factor_analysis_from_the_covariance_equals_scikit_learn_on_the_rows(data):
    x, _ = data
    x = x[:1000] * np.linspace(0.5, 2, P)  # its 3,000 iterations each decompose all rows
    solution = fitted("factor_analysis", x, "model.tolerance=1e-9")
    peer = FactorAnalysis(K, svd_method="lapack", tol=1e-7, max_iter=3000).fit(x)
    A = solution.extra["loadings"]
    np.testing.assert_allclose(A.T @ A, peer.components_.T @ peer.components_, atol=2e-3)
    np.testing.assert_allclose((x @ solution.encoder).var(0), 1, rtol=1e-9)


@pytest.mark.parametrize("name", ["fastica", "picard"])
def test_ica_finds_the_sources_and_says_that_it_converged(name, data):
    if name == "picard":
        pytest.importorskip("picard")
    x, E = data
    solution = fitted(name, x)
    assert matched(solution.W, E) > 0.99
    assert solution.extra["converged"]
    np.testing.assert_allclose(np.linalg.norm(solution.W, axis=0), 1, rtol=1e-12)
    assert (np.diff(solution.sigma) <= 0).all()


def test_fastica_unmixes_a_non_orthogonal_mixture_as_scikit_learn_does():
    random = np.random.default_rng(1)
    s = random.uniform(-1, 1, (4000, 3))
    x = s @ np.array([[1.0, 0.4, 0.2], [0.1, 1, 0.5], [0.6, 0.2, 1]])
    x -= x.mean(0)
    ours = x @ fitted("fastica", x, k=3).encoder
    peer = FastICA(3, whiten="unit-variance", tol=1e-6, max_iter=1000, random_state=0).fit_transform(x)
    for y in (ours, peer):
        correlation = np.abs(np.corrcoef(y.T, s.T)[:3, 3:])
        assert correlation.max(1).min() > 0.99
    # Source variance is exactly 1 (biased), and the decoder mixes back.
    np.testing.assert_allclose(ours.var(0), 1, rtol=1e-9)
    np.testing.assert_allclose(ours @ fitted("fastica", x, k=3).decoder, x, atol=1e-9)


@pytest.mark.parametrize("name", ["fastica", "picard"])
def test_an_unconverged_ica_says_so(name, data, caplog):
    if name == "picard":
        pytest.importorskip("picard")
    with caplog.at_level(logging.WARNING, "sigmapca"):
        solution = fitted(name, data[0], "model.max_iter=1")
    assert not solution.extra["converged"] and "not converged" in caplog.text


def test_a_deficient_rank_is_reported_and_ica_refuses_it(data, caplog):
    x = data[0].copy()
    x[:, 3:] = x[:, :1]
    with caplog.at_level(logging.WARNING, "sigmapca"):
        assert fitted("pca_svd", x).extra["rank"] == 3
    assert "rank 3" in caplog.text
    with pytest.raises(InputError, match="rank 3"):
        fitted("fastica", x)


def test_the_rank_does_not_depend_on_the_scale(data):
    assert {fitted("pca_svd", data[0] * scale).extra["rank"] for scale in (1e-9, 1, 1e9)} == {P}


def test_too_many_components_are_refused_with_both_numbers(data):
    with pytest.raises(InputError, match=r"k=11.*p=10"):
        fitted("pca_svd", data[0], k=11)


def test_picard_that_is_missing_names_the_extra(monkeypatch):
    cfg = composed("picard")
    monkeypatch.setitem(sys.modules, "picard", None)  # what Python keeps for a module that cannot be imported
    with pytest.raises(InputError, match=r"pip install python-picard"):
        make_method(cfg)


def test_rows_fewer_than_features_work():
    x = torch.randn(5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).numpy()
    solution = fitted("pca_svd", x - x.mean(0), k=3)
    assert np.isfinite(solution.encoder).all() and solution.extra["rank"] == 4
