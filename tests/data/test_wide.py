"""Data of many features: the covariance is never made, and everything is equal to what the dense path gives."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from mechanisms import every
from wide_helpers import solved

from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.moments import centred_rows, covariance, eigenpairs
from sigmapca_cli.data.moments.eigenpairs import lanczos
from sigmapca_cli.data.n_components import count_for
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.certify import cut_by
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.training.local import BESIDE, frame

N, P, K = 150, 200, 5


def made(n=N, p=P, seed=0):
    """Five heavy-tailed sources in p features, noise, and a mean far from 0."""
    random = np.random.default_rng(seed)
    E = np.linalg.qr(random.standard_normal((p, K)))[0]
    s = random.laplace(size=(n, K)) * (30 * 0.6 ** np.arange(K))
    return (s @ E.T + 0.3 * random.standard_normal((n, p)) + 7).astype(np.float32)


@pytest.fixture(scope="module")
def X():
    return made()


def source_of(X, standardise="none", **options):
    return MemorySource("array", X, Standardisation(standardise, **options))


@pytest.fixture
def wide(monkeypatch):
    """A function that makes a source with an implicit covariance, whatever p."""

    def build(X, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(covariance, "WIDE", 10)
            source = source_of(X, *args, **options)
            source.covariance()
        return source

    return build


@pytest.mark.parametrize("standardise", ["none", "feature"])
@pytest.mark.parametrize("gram", [1024, 10], ids=["gram", "lanczos"])
def test_leading_axes_are_those_of_the_dense_covariance(X, wide, monkeypatch, gram, standardise):
    monkeypatch.setattr(covariance, "GRAM_ROWS", gram)
    exact, found = source_of(X, standardise), wide(X, standardise)
    values, vectors = exact.principal_axes()
    axes = found.leading_axes(K)
    np.testing.assert_allclose(axes.values[:K], values[:K], rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(axes.up_to(K) * vectors[:, :K], axis=0)), 1, atol=1e-8)
    assert axes.whole == (gram > 10) and axes.error <= covariance.GOOD
    np.testing.assert_allclose(axes.total, values.sum(), rtol=1e-9)
    C, W = exact.covariance()[1], np.random.default_rng(1).standard_normal((P, 3))
    for product in (found.covariance()[1] @ W, (W.T @ found.covariance()[1]).T):
        np.testing.assert_allclose(product, C @ W, rtol=1e-9, atol=1e-9 * np.abs(C @ W).max())


def test_more_rows_than_features(wide):
    X = made(n=1100)
    exact, found = source_of(X), wide(X)
    np.testing.assert_allclose(
        found.leading_axes(K).values[:K], exact.principal_axes()[0][:K], rtol=1e-8
    )  # by Lanczos
    many = found.leading_axes(60)  # of the dense covariance
    np.testing.assert_allclose(many.values[:60], exact.principal_axes()[0][:60], rtol=1e-8)


def test_what_is_approximate_says_its_error_and_it_is_a_bound():
    random = np.random.default_rng(0)
    X = random.standard_normal((900, 400))  # a flat spectrum: products converge slowly
    C = X.T @ X / 900
    exact = np.linalg.eigvalsh(C)[::-1][:10]
    before = np.inf
    for most in (2, 6, 12, 60):
        pairs = lanczos(lambda W: C @ W, 400, 10, most=most)
        true = np.abs(pairs.values[:10] / exact - 1).max()
        assert pairs.products <= most and true <= pairs.error * (1 + 1e-9) < before
        before = pairs.error
        if most == 2:
            assert pairs.error > 1e-2
    assert pairs.error <= 1e-9 and true < 1e-9


def test_an_error_is_stored_and_shown(X, wide, monkeypatch):
    for name, value in (("GRAM_ROWS", 10), ("DENSE", 10)):
        monkeypatch.setattr(covariance, name, value)
    monkeypatch.setattr(covariance, "lanczos", partial(lanczos, most=2))
    flat = wide(np.random.default_rng(0).standard_normal((300, P)))
    W = flat.leading_axes(3).up_to(3)
    error = evaluate_solution(W, np.ones(3), None, flat)["pca_error"]
    assert error > 1e-3 and f"right to {error:.1g} of themselves" in flat.approximate()
    monkeypatch.setattr(covariance, "lanczos", lanczos)
    good = wide(X)
    good.leading_axes(3)
    assert good.approximate() is None


WAYS = [
    ("pca_svd",),
    ("ppca",),
    ("fastica",),
    ("nlpca", "solver=newton"),
    ("nlpca", "solver=moments"),
    ("nlpca", "solver=newton", "solver.clip=0.9"),
    ("nlpca", "steps=20"),
    ("nlpca", "steps=20", "sigma=data", "init=orthogonal"),
    ("nlpca_trainable_a", "steps=20"),
    ("lica", "steps=20"),
]
HELD = [way for way in WAYS if way[0] not in ("ppca", "lica")] + [
    # The signs of eigenvectors differ between the paths, so that this one starts at another rotation.
    ("nlpca", "steps=5", "model.project=whiten", "sigma=unit", "init=orthogonal"),
    ("lica", "steps=2"),
]


@pytest.mark.parametrize(
    ("way",), every([(way,) for way in WAYS], [(WAYS[0],), (WAYS[3],), (WAYS[6],)]), ids=" ".join
)
def test_every_way_to_a_solution_equals_the_dense_one(X, wide, way):
    exact, source = source_of(X), wide(X)
    one, other = solved(exact, *way)[0], solved(source, *way)[0]
    # float32 training rounds the sums of the two paths differently
    close = 2e-3 if any("steps" in word for word in way) else 1e-5
    np.testing.assert_allclose(other.sigma, one.sigma, rtol=close)
    np.testing.assert_allclose(other.W, one.W, atol=close)
    first, second = (
        evaluate_solution(s.W, s.sigma, s.encoder, d) for s, d in ((one, exact), (other, source))
    )
    assert first.keys() == second.keys() - {"pca_error"}
    for name in ("explained_variance", "reconstruction_error", "total_variance", "pca_sigma", "kurtosis"):
        np.testing.assert_allclose(second[name], first[name], rtol=20 * close, err_msg=name)
    Y = np.concatenate(list(source.project(one.W, np.arange(N))))
    np.testing.assert_array_equal(cut_by(exact, Y), cut_by(source, Y))


@pytest.mark.parametrize(
    ("way",), every([(way,) for way in HELD], [(HELD[0],), (HELD[2],), (HELD[5],)]), ids=" ".join
)
def test_nothing_of_p_times_p_is_made(way):
    p = 4000
    X = made(n=40, p=p)
    solved(source_of(X[:, :2100]), *way)  # what is imported on first use does not count
    tracemalloc.start()
    source = source_of(X)
    solution, _ = solved(source, *way)
    evaluate_solution(solution.W, solution.sigma, solution.encoder, source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * p * p / 2
    with pytest.raises(TypeError, match="covariance of 4000 features is not to be made"):
        np.asarray(source.covariance()[1])


def test_words_for_k_need_no_more_eigenvalues_than_there_are(X, wide, monkeypatch):
    exact = source_of(X)
    for k in ("auto", "all", 0.9, 0.99, "mdl"):
        assert count_for(wide(X), k) == count_for(exact, k), k
    with pytest.raises(InputError, match="k=mle needs all 200 eigenvalues"):
        count_for(wide(X), "mle")
    monkeypatch.setattr(covariance, "GRAM_ROWS", 10)
    X = made(n=190)
    part = wide(X)
    assert count_for(part, "auto") == 32 and count_for(part, 0.9) == count_for(source_of(X), 0.9)
    for k, why in (("all", "k=all needs all"), ("mdl", "k=mdl"), (0.99999, "no more are computed")):
        with pytest.raises(InputError, match=why):
            count_for(part, k)


def test_what_needs_the_whole_matrix_is_refused_in_words(X, wide, monkeypatch):
    with pytest.raises(InputError, match=r"data\.whiten of 20000 features needs a matrix of 3\.2 GB"):
        source_of(np.zeros((2, 20000)), whiten="zca")
    with pytest.raises(InputError, match="factor_analysis needs the whole covariance of the 200 features"):
        solved(wide(X), "factor_analysis")
    for name, value in (("GRAM_ROWS", 10), ("DENSE", 50)):
        monkeypatch.setattr(covariance, name, value)
    with pytest.raises(InputError, match="choose k up to 30"):
        wide(X).leading_axes(40)


def test_rows_in_another_unit_have_the_same_axes(X, wide):
    one = wide(X)
    other = one.divided(3.0)
    for found, axes in ((other.leading_axes(K), one.leading_axes(K)),):
        np.testing.assert_allclose(9 * found.values, axes.values)
        np.testing.assert_array_equal(found.vectors, axes.vectors)
    W = one.leading_axes(K).up_to(K)
    np.testing.assert_allclose(9 * (other.covariance()[1] @ W), one.covariance()[1] @ W)
    np.testing.assert_allclose(other.take(np.arange(9)) * 3, one.take(np.arange(9)), rtol=1e-5, atol=1e-5)


def test_the_measure_of_convergence_gets_its_directions_where_few_axes_are_at_hand(X, wide, monkeypatch):
    monkeypatch.setattr(eigenpairs, "SPARE_ENTRIES", 1)
    source = wide(X)
    assert source.leading_axes(K).vectors.shape[1] == K + 2
    W = source.leading_axes(K).up_to(K)
    G = np.random.default_rng(0).standard_normal((4, *W.shape))
    assert frame(W, G, source, inner=False).shape[1] == K + BESIDE


def test_a_flat_spectrum_is_described_by_few_passes(monkeypatch, tmp_path):
    """Its leading axes take 35 products with all rows to converge, and say nothing: 238 s for 2,000 × 60,000."""
    passes, times = [], centred_rows.CentredRows.times
    monkeypatch.setattr(
        centred_rows.CentredRows, "times", lambda self, W: passes.append(W.shape) or times(self, W)
    )
    monkeypatch.setattr("sigmapca_cli.data.moments.covariance.GRAM_ROWS", 100)  # as if the rows were too many
    np.save(tmp_path / "flat.npy", np.random.default_rng(0).normal(size=(600, 5000)).astype(np.float32))
    facts, _ = describe(tmp_path / "flat.npy")
    assert facts["features"] == 5000 and 0 < len(passes) <= 15
