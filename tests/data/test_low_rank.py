"""Whitening by few axes of many features: equal to the dense matrix, stored by its factors, never made."""

import json

import h5py
import numpy as np
import pytest
from scipy import sparse
from wide_helpers import solved

from sigmapca_cli.cli.apply import reconstruct, transform
from sigmapca_cli.cli.evaluate import evaluated
from sigmapca_cli.composition.compose import compose_job
from sigmapca_cli.data import source as base
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.matrix.sparse import SparseSource
from sigmapca_cli.data.moments import covariance
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.runner.run import run
from sigmapca_cli.solution.export import export
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError

N, P, R = 130, 250, 6


def made(n=N, p=P):
    random = np.random.default_rng(0)
    s = random.laplace(size=(n, R + 2)) * (30 * 0.7 ** np.arange(R + 2))
    return (s @ random.standard_normal((R + 2, p)) / 9 + 0.1 * random.standard_normal((n, p)) + 3).astype(
        "f4"
    )


@pytest.fixture(scope="module")
def X():
    return made()


def source_of(X, kind, rank=R, **options):
    return MemorySource("array", X, Standardisation("feature", whiten=kind, whiten_rank=rank, **options))


@pytest.fixture
def wide(monkeypatch):
    """Take every number of features for many."""
    for module in (base, covariance):
        monkeypatch.setattr(module, "WIDE", 10)


@pytest.mark.parametrize("options", [{}, {"centre": False}, {"scale_input": 0.5}], ids=str)
@pytest.mark.parametrize("kind", ["pca", "zca"])
def test_rows_and_covariance_are_those_of_the_dense_matrix(X, kind, options, monkeypatch):
    exact = source_of(X, kind, **options)
    (mean, C), (values, vectors) = exact.covariance(), exact.principal_axes()
    monkeypatch.setattr(base, "WIDE", 10)
    monkeypatch.setattr(covariance, "WIDE", 10)
    found = source_of(X, kind, **options)
    assert found.hash == exact.hash and found.whitening.shape == (P, P)
    W = np.random.default_rng(1).standard_normal((P, 3))
    T = exact.whitening
    np.testing.assert_allclose(found.whitening @ np.eye(P, 40), T[:, :40], atol=1e-8 * np.abs(T).max())
    offset, D = found.covariance()
    np.testing.assert_allclose(offset, mean, atol=1e-8 * max(np.abs(mean).max(), 1e-3))
    np.testing.assert_allclose(D @ W, C @ W, atol=1e-8 * np.abs(C @ W).max())
    np.testing.assert_allclose(D.diagonal(), C.diagonal(), atol=1e-8)
    rows = exact.take(np.arange(N))
    np.testing.assert_allclose(found.take(np.arange(N)), rows, atol=3e-7 * np.abs(rows).max())  # float32
    axes = found.leading_axes(R)
    np.testing.assert_allclose(axes.values, values[:R], rtol=1e-8)
    V = vectors[:, :R]  # all eigenvalues are equal: the spans are compared
    np.testing.assert_allclose(
        axes.vectors @ (axes.vectors.T @ W), V @ (V.T @ W), atol=1e-8 * np.abs(W).sum()
    )
    assert axes.rank == R and axes.total == pytest.approx(C.trace())
    half = found.divided(2.0)
    np.testing.assert_allclose(2 * half.take(np.arange(9)), rows[:9], rtol=1e-5, atol=1e-5)


def test_sparse_rows_are_whitened_alike(wide):
    random = np.random.default_rng(0)
    S = sparse.random_array((300, 60), density=0.2, format="csr", rng=random)
    options = Standardisation("none", whiten="zca", whiten_rank=4)
    one = MemorySource("array", S.toarray(), options)
    other = SparseSource("array", sparse.csr_matrix(S), "x", options)
    W = random.standard_normal((60, 2))
    for a, b in zip(one.project(W), other.project(W), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(one.covariance()[1] @ W, other.covariance()[1] @ W, atol=1e-9)


@pytest.mark.parametrize("kind", ["pca", "zca"])
@pytest.mark.parametrize(
    "way", [("pca_svd",), ("nlpca", "solver=newton", "a=4"), ("nlpca", "steps=30")], ids=" ".join
)
def test_every_way_to_a_solution_takes_whitened_rows(X, kind, way, wide):
    source = source_of(X, kind)
    other = solved(source, *way, k=3)[0]
    values = evaluate_solution(other.W, other.sigma, other.encoder, source)
    assert values["total_variance"] == pytest.approx(R)
    # All directions have the variance 1: which of them are found is open, but they lie in the span of the whitening.
    spanned = source.whitening.right @ (source.whitening.right.T @ other.W)
    if "steps=30" not in way:
        np.testing.assert_allclose(other.sigma, 1, rtol=1e-6)
        np.testing.assert_allclose(spanned, other.W, atol=1e-6)
    assert (np.linalg.norm(spanned, axis=0) > 0.9).all()


def test_a_run_stores_the_factors_and_every_command_applies_them(tmp_path):
    X = made(60, 2100)
    np.save(tmp_path / "x.npy", X)
    words = ["data=array", f"data.path={tmp_path / 'x.npy'}", "data.whiten=zca", "data.whiten_rank=5", "k=3"]
    found = StoredRun.open(run(compose_job(["solver=newton", "a=4", f"run_dir={tmp_path / 'run'}", *words])))
    assert found.attrs["format_version"] == 2 and found.array("whitening") is None
    with h5py.File(found.path) as file:
        assert max(data.size for data in file.values() if isinstance(data, h5py.Dataset)) <= 2100 * 5
        x = (X - file["mean"][:]) / file["scale"][:]
        x = x @ file["whitening_left"][:] @ file["whitening_right"][:].T
        y = x @ file["encoder"][:]
    np.testing.assert_allclose(y.var(axis=0), 1, rtol=1e-9)
    out = str(tmp_path / "y.npy")
    transform(str(found.folder), str(tmp_path / "x.npy"), out, [], None, None, False)
    np.testing.assert_allclose(np.load(out), y, atol=1e-5)
    reconstruct(str(found.folder), out, str(tmp_path / "back.npy"), [], None, None, False, None)
    left = np.load(tmp_path / "back.npy") - X
    assert np.square(left).sum() < 0.9 * np.square(X - X.mean(axis=0)).sum()
    np.testing.assert_allclose(left.mean(axis=0), 0, atol=1e-3)
    again = evaluated(str(found.folder), str(tmp_path / "x.npy"), False)
    own = evaluated(str(found.folder), None, False)
    for name in ("explained_variance", "reconstruction_error", "kurtosis"):
        np.testing.assert_allclose(again[name], own[name], rtol=1e-4, err_msg=name)
    archive = np.load(export(found, tmp_path / "out.npz"))
    assert archive["whitening_left"].shape == (2100, 5) and "whitening" not in archive
    assert "whitening_left @ whitening_right.T" in json.loads(str(archive["metadata"]))["use"]


def test_what_cannot_be_whitened_is_refused_in_words(wide):
    X = made(40, 300)
    with pytest.raises(InputError, match=r"whiten of 300 features.*add data\.whiten_rank=R"):
        source_of(X, "zca", None)
    with pytest.raises(
        InputError, match=r"data\.whiten_rank=60: the data have numerical rank 39; lower it to 39"
    ):
        source_of(X, "pca", 60)
    with pytest.raises(InputError, match="k = 7 is more than the numerical rank 6"):
        solved(source_of(X, "zca"), "pca_svd", k=7)
    with pytest.raises(TypeError, match="whitening matrix of 300 features is not to be made"):
        np.asarray(source_of(X, "zca").whitening)
