"""The estimator keeps scikit-learn's contract, equals PCA where it must, and finds what PCA cannot."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sigmapca_cli.evaluation.metrics import mcc
from sigmapca_cli.sklearn import SigmaPCA

SGD = {"solver": "sgd", "a": 4.0, "max_iter": 2}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([SigmaPCA()])
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [SigmaPCA(solver="newton"), SigmaPCA(solver="moments"), SigmaPCA(**SGD)],
    # As for SGDClassifier: another number of rows gives other batches, whatever their weights.
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": "batches differ",
            "check_sample_weight_equivalence_on_sparse_data": "batches differ",
        }
        if estimator.solver == "sgd"
        else {}
    ),
)
def test_contract_of_scikit_learn_by_every_solver(estimator, check):
    check(estimator)


def planted(n=4000, p=10, draw="laplace", seed=0, noise=0.02):
    """Two groups of two sources of equal variance: linear PCA cannot tell those of a group apart."""
    g = np.random.default_rng(seed)
    E = np.linalg.qr(g.standard_normal((p, 4)))[0]
    s = g.laplace(size=(n, 4)) / np.sqrt(2) if draw == "laplace" else g.uniform(-1, 1, (n, 4)) * np.sqrt(3)
    if draw == "mixed":
        s[:, ::2] = g.laplace(size=(n, 2)) / np.sqrt(2)
    return (s * [3, 3, 1.5, 1.5]) @ E.T + noise * g.standard_normal((n, p)) + 5, E, s


@pytest.mark.parametrize("draw", ["laplace", "uniform", "mixed"])
def test_finds_planted_axes_that_linear_pca_cannot(draw):
    X, E, _ = planted(draw=draw)
    found = SigmaPCA(4).fit(X)
    assert found.converged_
    assert mcc(found.components_.T, E) > 0.995
    assert mcc(PCA(4).fit(X).components_.T, E) < 0.97


def test_stochastic_training_finds_them_too():
    X, E, _ = planted()
    assert mcc(SigmaPCA(4, solver="moments").fit(X).components_.T, E) > 0.99
    assert mcc(SigmaPCA(4, solver="sgd", a=4.0, max_iter=40).fit(X).components_.T, E) > 0.99


def test_gaussian_data_of_distinct_variances_is_linear_pca():
    X = np.random.default_rng(0).standard_normal((3000, 5)) * [8, 4, 2, 1, 0.5]
    found, peer = SigmaPCA(3, a=4.0).fit(X), PCA(3).fit(X)
    assert mcc(found.components_.T, peer.components_.T) > 0.999
    np.testing.assert_allclose(found.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-3)


@pytest.mark.parametrize("whiten", [False, True])
def test_transform_and_its_inverse(whiten):
    X, _, _ = planted(noise=0)
    found = SigmaPCA(4, whiten=whiten).fit(X)
    Y = found.transform(X)
    np.testing.assert_allclose(found.inverse_transform(Y), X, atol=1e-9)
    np.testing.assert_allclose(Y.std(axis=0), 1.0 if whiten else found.sigma_)
    assert (np.diff(found.sigma_) <= 0).all()
    W = found.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-9)
    assert (W[np.abs(W).argmax(axis=0), np.arange(4)] > 0).all()


def test_scale_and_offset_of_the_data_change_nothing_but_themselves():
    X, _, _ = planted()
    found, tiny = SigmaPCA(4).fit(X), SigmaPCA(4).fit(X * 1e-9 + 1e-7)
    np.testing.assert_allclose(tiny.components_, found.components_, atol=1e-5)
    np.testing.assert_allclose(tiny.sigma_, found.sigma_ * 1e-9, rtol=1e-5)


def test_float32_and_float64_agree():
    X, _, _ = planted()
    low = SigmaPCA(4).fit(X.astype(np.float32))
    assert mcc(low.components_.T, SigmaPCA(4).fit(X).components_.T) > 0.9999
    assert low.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_rows_than_features():
    X = np.random.default_rng(0).laplace(size=(30, 80))
    found = SigmaPCA(5).fit(X)
    assert found.components_.shape == (5, 80) and np.isfinite(found.transform(X)).all()
    assert SigmaPCA(a=4.0, max_iter=3).fit(X).components_.shape == (29, 80)


def test_works_in_a_pipeline_and_names_its_output():
    iris = load_iris(as_frame=True)
    pipeline = make_pipeline(StandardScaler(), SigmaPCA(2)).set_output(transform="pandas")
    out = pipeline.fit_transform(iris.data)
    assert list(out.columns) == ["sigmapca0", "sigmapca1"] and out.shape == (150, 2)
    again = pickle.loads(pickle.dumps(pipeline)).transform(iris.data)
    np.testing.assert_array_equal(again.to_numpy(), out.to_numpy())


def test_the_same_fit_gives_the_same_bits():
    X, _, _ = planted()
    for model in (SigmaPCA(4), SigmaPCA(4, **SGD, random_state=3)):
        np.testing.assert_array_equal(clone(model).fit(X).components_, clone(model).fit(X).components_)


def test_certificate_tells_gaussian_components_from_others():
    X, _, _ = planted()
    X = np.hstack(
        [X @ np.linalg.qr(np.random.default_rng(1).standard_normal((10, 10)))[0], _gaussian(len(X))]
    )
    found = SigmaPCA(6).fit(X)
    np.testing.assert_array_equal(found.certificate(X).identified, [True] * 4 + [False] * 2)


def _gaussian(n):
    g = np.random.default_rng(2).standard_normal((n, 2))
    return 0.5 * (g - g.mean(axis=0)) / g.std(axis=0)


def test_settings_that_cannot_work_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 3))
    for model, message in [
        (SigmaPCA(4), "more than min"),
        (SigmaPCA(0), "whole number"),
        (SigmaPCA(solver="lbfgs"), "choose from independence, newton, moments, sgd"),
        (SigmaPCA(a=-1.0), "positive"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X)
    with pytest.raises(ValueError, match="numerical rank 1"):
        SigmaPCA(2).fit(X[:, :1] @ np.ones((1, 3)))
    with pytest.raises(ValueError, match="no variance"):
        SigmaPCA().fit(np.ones((5, 3)))


def test_no_convergence_is_said():
    X, _, _ = planted()
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        assert not SigmaPCA(4, max_iter=1).fit(X).converged_


@pytest.mark.parametrize("k", [0.5, 0.95, 0.99, "mle"])
def test_the_number_of_components_is_that_of_pca(k):
    from sklearn.datasets import load_wine
    from sklearn.decomposition import PCA

    X = load_wine().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = PCA(k, svd_solver="full").fit(X).n_components_
    found = SigmaPCA(k, max_iter=1000).fit(X)
    assert found.n_components_ == expected == len(found.components_)
    assert SigmaPCA("all").fit(X[:, :3]).n_components_ == 3


@pytest.mark.parametrize("k", [0.0, 1.5, -0.2, "many", True])
def test_other_numbers_of_components_are_refused(k):
    with pytest.raises(ValueError, match="n_components="):
        SigmaPCA(k).fit(np.random.default_rng(0).normal(size=(50, 4)))


def test_a_row_that_owns_a_component_is_said():
    X = np.random.default_rng(0).laplace(size=(500, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        SigmaPCA().fit(X)
    X[42] *= 1e4
    with pytest.warns(UserWarning, match="row 42 .* has 100 % of the variance"):
        SigmaPCA().fit(X)


def test_the_command_and_the_class_agree_on_an_array(tmp_path):
    """Both centre and do not scale."""
    from sigmapca_cli.data import build
    from sigmapca_cli.data.config import DataConfig

    X = np.random.default_rng(0).laplace(size=(300, 3)) * [1, 4, 9]
    np.save(tmp_path / "x.npy", X)
    source = build(DataConfig(name="array", path=str(tmp_path / "x.npy")))
    found = SigmaPCA().fit(X)
    np.testing.assert_allclose(source.mean, found.mean_)
    np.testing.assert_array_equal(source.scale, np.ones(3))
    np.testing.assert_allclose(source.covariance()[1].trace(), found.explained_variance_.sum())


PARTS = ({}, {"solver": "newton"}, {"solver": "moments"})


@pytest.mark.parametrize("settings", PARTS, ids=str)
def test_parts_give_what_the_whole_gives(settings):
    X, E, _ = planted()
    whole, parts = SigmaPCA(4, **settings).fit(X), SigmaPCA(4, **settings)
    for part in np.split(X, [700, 701, 2500]):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-4)
    for name in ("mean_", "sigma_", "explained_variance_ratio_", "noise_variance_", "singular_values_"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-4, err_msg=name)
    assert parts.n_samples_ == len(X) and mcc(parts.components_.T, E) > 0.995


def test_a_long_stream_keeps_exact_moments_and_a_fair_sample(monkeypatch):
    from sigmapca_cli.estimator import streaming

    monkeypatch.setattr(streaming, "STREAM_ROWS", 2000)
    X, E, _ = planted(n=8000)
    X[:, 0] += np.linspace(0, 0.2, len(X))
    parts = SigmaPCA(4, random_state=0)
    for part in np.array_split(X, 20):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.mean_, X.mean(0))
    W = parts.components_.T
    np.testing.assert_allclose(parts.sigma_, ((X - X.mean(0)) @ W).std(0))
    assert len(parts._stream.rows) == 2000 and mcc(W, E) > 0.99
    kept = np.isin(X[:, 1], parts._stream.rows[:, 1])
    early, late = kept[:4000].mean(), kept[4000:].mean()
    assert abs(early - 0.25) < 0.03 and abs(late - 0.25) < 0.03
    assert SigmaPCA(4).fit(X).n_samples_ == len(X)  # a fit knows nothing of the parts
    parts.fit(X[:500])
    assert parts.n_samples_ == 500


def test_partial_fit_goes_on_from_a_fit():
    X, _, _ = planted()
    whole = SigmaPCA(4).fit(X)
    for found in (SigmaPCA(4).fit(X[:3000]), SigmaPCA(4)):
        if not hasattr(found, "components_"):
            found.fit_transform(X[:3000])
        found.partial_fit(X[3000:])
        assert found.n_samples_ == len(X)
        np.testing.assert_allclose(found.components_, whole.components_, atol=1e-4)
        np.testing.assert_allclose(found.mean_, X.mean(0))
        again = pickle.loads(pickle.dumps(found)).partial_fit(X[:100])
        assert again.n_samples_ == len(X) + 100
    stored = pickle.dumps(SigmaPCA(4).fit(X))
    assert len(stored) < 10_000  # without the rows
    from scipy import sparse

    for nothing_kept in (pickle.loads(stored), SigmaPCA(4).fit(sparse.csr_matrix(X))):
        with pytest.raises(ValueError, match="partial_fit"):
            nothing_kept.partial_fit(X)


def test_a_warm_start_takes_fewer_iterations():
    X, _, _ = planted()
    parts = SigmaPCA(4).partial_fit(X[:3000])
    first = parts.n_iter_
    parts.partial_fit(X[3000:])
    assert parts.n_iter_ < first and parts.converged_


def test_sgd_goes_on_from_its_filters():
    X, E, _ = planted()
    found = SigmaPCA(4, solver="sgd", a=4.0, max_iter=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        once = mcc(found.partial_fit(X).components_.T, E)
        for _ in range(5):
            found.partial_fit(X[:1])
    assert mcc(found.components_.T, E) > max(once, 0.99)


@pytest.mark.parametrize("draw", ["laplace", "uniform"])
def test_sgd_chooses_a_by_the_data(draw):
    X, E, _ = planted(draw=draw)
    found = SigmaPCA(4, solver="sgd", max_iter=20, random_state=np.random.RandomState(0)).fit(X)
    assert set(found.a_.round(4)) <= ({5.0} if draw == "laplace" else {0.8, 0.4})
    assert mcc(found.components_.T, E) > 0.99


def test_the_gaussian_of_the_model_is_that_of_pca():
    X = np.random.default_rng(0).standard_normal((3000, 5)) * [8, 4, 2, 1, 0.5] + 3
    n = len(X)
    found, peer = SigmaPCA(3, a=4.0).fit(X), PCA(3).fit(X)
    # PCA divides by n − 1.
    np.testing.assert_allclose(found.noise_variance_ * n / (n - 1), peer.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(found.singular_values_, peer.singular_values_, rtol=1e-3)
    np.testing.assert_allclose(found.get_covariance(), peer.get_covariance(), atol=0.1)
    np.testing.assert_allclose(found.score(X), peer.score(X), rtol=1e-3)
    assert SigmaPCA(1, a=4.0).fit(X).score(X) < found.score(X)
    full = SigmaPCA(a=4.0).fit(X)
    assert full.noise_variance_ == 0 and np.isfinite(full.score(X))
    with pytest.raises(ValueError, match="no density"):
        SigmaPCA(2, a=4.0).fit(np.c_[X[:, :2], X[:, :1]]).score(np.c_[X[:, :2], X[:, :1]])


@pytest.mark.parametrize("solver", ["independence", "newton", "moments", "sgd"])
def test_sparse_rows_give_what_dense_ones_give(solver):
    from scipy import sparse

    random = np.random.default_rng(0)
    X = np.where(random.random((400, 12)) < 0.2, random.exponential(size=(400, 12)) * np.arange(1, 13), 0.0)
    a = 4.0 if solver == "sgd" else None
    options = {"solver": solver, "a": a, "random_state": 0, "max_iter": 30}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense, found = (SigmaPCA(3, **options).fit(M) for M in (X, sparse.csc_matrix(X)))
    np.testing.assert_allclose(found.components_, dense.components_, atol=1e-8 if solver != "sgd" else 1e-3)
    np.testing.assert_allclose(found.explained_variance_ratio_, dense.explained_variance_ratio_, rtol=1e-6)
    np.testing.assert_allclose(found.mean_, dense.mean_, atol=1e-12)
    Y = found.transform(sparse.csr_matrix(X))
    np.testing.assert_allclose(Y, found.transform(X), atol=1e-10)
    assert len(found.certificate(sparse.csr_matrix(X)).score) == 3
    np.testing.assert_allclose(SigmaPCA().fit(sparse.csr_matrix(X)).n_components_, 12)
    with pytest.raises(ValueError, match="n_components=12 is more than the numerical rank 11"):
        SigmaPCA(12).fit(sparse.csr_matrix(np.c_[X[:, :11], X[:, 0]]))


def test_many_features_take_no_matrix_of_all_of_them():
    random = np.random.default_rng(0)
    X = random.laplace(size=(60, 4)) @ random.standard_normal((4, 3000)) + 0.1 * random.standard_normal(
        (60, 3000)
    )
    found = SigmaPCA(4).fit(X)
    exact = np.linalg.svd(X - X.mean(0), compute_uv=False)[:4] ** 2 / 60
    np.testing.assert_allclose(found.explained_variance_.sum(), exact.sum(), rtol=1e-8)
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(4), atol=1e-10)
    with pytest.raises(ValueError, match="at most 2048 features: use fit for 3000"):
        SigmaPCA(4).partial_fit(X)
