"""Sparse rows: equal to the dense ones to 1e-8, and never made dense."""

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg
from wide_helpers import solved

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.matrix.sparse import SparseSource
from sigmapca_cli.data.moments import covariance
from sigmapca_cli.data.moments.accumulate import check_k
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.system.errors import InputError

N, P, K = 300, 60, 3
PLAIN = Standardisation("none")


def made(n=N, p=P, seed=0):
    """Counts that three hidden kinds of rows share, a constant column and an empty one."""
    random = np.random.default_rng(seed)
    rates = random.pareto(1.5, size=(3, p)) / 8
    X = random.poisson(rates[random.integers(0, 3, n)] * random.exponential(2, (n, 1))).astype(np.float64)
    X[:, 5], X[:, 6] = 2.0, 0.0
    return sparse.csr_matrix(X)


DENSE = made().toarray()


@pytest.fixture(scope="module")
def X():
    return made()


@pytest.fixture
def never_dense(monkeypatch):
    """Fail where more than a block of a sparse matrix is written out."""
    toarray = sparse.csr_matrix.toarray

    def small_only(self, *args, **kwargs):
        assert self.shape[0] <= 64 or self.shape[0] == self.shape[1], f"{self.shape} made dense"
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_matrix, "toarray", small_only)
    monkeypatch.setattr(sparse.csr_matrix, "todense", small_only)
    monkeypatch.setattr("sigmapca_cli.data.matrix.sparse.DENSE_BLOCK", 64 * P)
    monkeypatch.setattr("sigmapca_cli.training.batches.BLOCK_ROWS", 64)


@pytest.mark.parametrize("standardise", ["none", "feature"])
@pytest.mark.parametrize("implicit", [False, True])
def test_everything_equals_dense_rows(X, never_dense, monkeypatch, standardise, implicit):
    options = Standardisation(standardise)
    dense = MemorySource("array", DENSE, options)
    found = SparseSource("array", X, "X", options)
    if implicit:
        monkeypatch.setattr(covariance, "WIDE", 10)
        monkeypatch.setattr(covariance, "GRAM_ROWS", 10)
        found.covariance()
        monkeypatch.setattr(covariance, "WIDE", 2048)
    np.testing.assert_allclose(found.mean, dense.mean, rtol=1e-12)
    np.testing.assert_allclose(found.scale, dense.scale, rtol=1e-12)
    assert found.constant_features == dense.constant_features == 2
    C, W = dense.covariance()[1], np.random.default_rng(1).standard_normal((P, K))
    np.testing.assert_allclose(found.covariance()[1] @ W, C @ W, rtol=1e-9, atol=1e-9)
    one, other = dense.leading_axes(K), found.leading_axes(K)
    np.testing.assert_allclose(other.values[:K], one.values[:K], rtol=1e-8)
    index = np.array([5, 0, 17, 17])
    np.testing.assert_allclose(found.take(index), dense.take(index), rtol=1e-6, atol=1e-6)
    for rows in (None, np.arange(N), index):
        a, b = (np.concatenate(list(s.project(W, rows))) for s in (found, dense))
        np.testing.assert_allclose(a, b, atol=1e-5)
    a, b = (np.concatenate(list(s.project(W, exact=True))) for s in (found, dense))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_few_rows_of_many_features(monkeypatch):
    X = made(n=40, p=300)
    monkeypatch.setattr(covariance, "WIDE", 10)
    found = SparseSource("array", X, "X", PLAIN).leading_axes(K)  # by the Gram matrix
    dense = MemorySource("array", X.toarray(), PLAIN).leading_axes(K)
    np.testing.assert_allclose(found.values, dense.values, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(found.up_to(K) * dense.up_to(K), axis=0)), 1, atol=1e-8)


WAYS = [
    ("pca_svd",),
    ("fastica",),
    ("nlpca", "solver=newton"),
    ("nlpca", "solver=moments"),
    ("nlpca", "steps=20", "batch_size=32"),
]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_every_way_to_a_solution(X, never_dense, way):
    dense, found = MemorySource("array", DENSE, PLAIN), SparseSource("array", X, "X", PLAIN)
    one, other = solved(dense, *way, k=K)[0], solved(found, *way, k=K)[0]
    np.testing.assert_allclose(other.sigma, one.sigma, rtol=1e-4)
    # Adam enlarges the rounding of a feature without variance.
    np.testing.assert_allclose(other.W, one.W, atol=1e-2 if "steps=20" in way else 1e-5)
    first, second = (evaluate_solution(one.W, one.sigma, one.encoder, s) for s in (dense, found))
    for name in ("explained_variance", "reconstruction_error", "kurtosis", "negentropy", "total_variance"):
        np.testing.assert_allclose(second[name], first[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_variance_of_a_large_constant_keeps_its_digits():
    random = np.random.default_rng(0)
    X = np.where(random.random((500, 4)) < 0.3, random.standard_normal((500, 4)), 0.0)
    X[:, 0] = 1e6 + random.standard_normal(500)
    found = SparseSource("array", sparse.csr_matrix(X), "X", PLAIN).covariance()[1]
    np.testing.assert_allclose(found, np.cov(X.T, bias=True), rtol=1e-6, atol=1e-9)


def config(path, **options):
    path = path if isinstance(path, list) else str(path)
    return DataConfig(name="array", path=path, **options)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("half", ["all", "odd"])
def test_archives_of_scipy(tmp_path, X, kind, half):
    sparse.save_npz(tmp_path / "X.npz", X.asformat(kind))
    source = build(config(tmp_path / "X.npz", half=half))
    assert isinstance(source, SparseSource)
    part = DENSE[1::2] if half == "odd" else DENSE
    np.testing.assert_allclose(source.take(np.arange(len(part)), raw=True), part)
    again = build(config(tmp_path / "X.npz", half=half))
    assert source.hash == again.hash


def h5ad(path, X, kind="csr", **changes):
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", X.shape
        Y = X.asformat(kind)
        for name in ("data", "indices", "indptr"):
            group[name] = changes.get(name, getattr(Y, name))
        var = file.create_group("var")
        var.attrs["_index"] = "gene"
        var["gene"] = [f"g{i}".encode() for i in range(X.shape[1])]
        obs = file.create_group("obs")
        obs.attrs["_index"] = "cell"
        obs["cell"] = [f"c{i}".encode() for i in range(X.shape[0])]
        file["obsm"] = np.zeros((X.shape[0], 2))  # an embedding beside it
    return path


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_groups_of_anndata(tmp_path, X, kind):
    source = build(config(h5ad(tmp_path / "X.h5ad", X, kind)))
    np.testing.assert_allclose(source.take(np.arange(N), raw=True), DENSE)
    assert source.names[:2] == ("g0", "g1") and source.labels[:2] == ["c0", "c1"]
    assert build(config(tmp_path / "X.h5ad", part="2/2")).labels is None  # they are those of all rows
    few = build(config(tmp_path / "X.h5ad", columns=["g3", "g1"]))
    np.testing.assert_allclose(few.take(np.arange(N), raw=True), DENSE[:, [3, 1]])


def test_what_does_not_fit_is_refused(tmp_path, X):
    wrong = {
        "indices": np.where(np.arange(X.nnz) == 7, P + 3, X.indices),
        "indptr": np.r_[X.indptr[:-1], X.nnz + 9],
        "data": X.data[:-1],
    }
    for name, value in wrong.items():
        with pytest.raises(InputError, match=r"is damaged: (its arrays|it has columns outside 0 … 59)"):
            build(config(h5ad(tmp_path / f"{name}.h5ad", X, **{name: value})))
    Y = X.copy()
    Y.data[3] = np.nan
    sparse.save_npz(tmp_path / "nan.npz", Y)
    row, column = int(np.searchsorted(Y.indptr, 3, side="right")) - 1, int(Y.indices[3])
    with pytest.raises(
        InputError, match=rf"NaN at row {row}, column {column}, counted from 0: remove or replace it"
    ):
        build(config(tmp_path / "nan.npz"))
    sparse.save_npz(tmp_path / "X.npz", X)
    with pytest.raises(InputError, match=r"is sparse, and data\.clip would fill it"):
        build(config(tmp_path / "X.npz", clip=0.01))
    np.save(tmp_path / "dense.npy", DENSE)
    with pytest.raises(InputError, match=r"dense\.npy is not sparse"):
        build(config([str(tmp_path / "X.npz"), str(tmp_path / "dense.npy")]))
    both = build(config([str(tmp_path / "X.npz"), str(tmp_path / "X.npz")]))
    assert both.n == 2 * N


def counted(groups, n=4000, p=3000):
    """Return rows with one 1 each, and their eigenvalues: of every group (columns, rows) the columns have as many."""
    counts = np.concatenate([np.full(columns, rows) for columns, rows in groups])
    column = np.repeat(np.arange(len(counts)), counts)
    X = sparse.csr_matrix((np.ones(len(column)), (np.arange(len(column)), column)), shape=(n, p))
    share = counts / n  # the further columns are 0
    values = np.linalg.eigvalsh(np.diag(share) - np.outer(share, share))[::-1]
    return X, np.concatenate([values, np.zeros(p - len(values))])


@pytest.mark.parametrize("groups", [[(30, 100)], [(3, 400), (5, 200), (60, 20)], [(2, 900), (100, 20)]])
def test_axes_of_one_vector_at_a_time_miss_no_multiple_eigenvalue(groups):
    X, exact = counted(groups)
    found = SparseSource("array", X, "X", PLAIN)
    axes = found.leading_axes(12)
    np.testing.assert_allclose(axes.values[:12], exact[:12], rtol=1e-9, atol=1e-15)
    assert axes.error < 1e-9 and not axes.whole
    W = axes.up_to(12)
    np.testing.assert_allclose(found.covariance()[1] @ W, W * axes.values[:12], atol=1e-12)
    # The first axis left out is as exact: whether k cuts through equal variances is read off it.
    np.testing.assert_allclose(axes.values[12], exact[12], rtol=1e-9, atol=1e-15)
    V = axes.vectors
    assert V.shape[1] > 13 or exact[14] < 1e-12
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    assert (axes.values[: V.shape[1]] <= exact[: V.shape[1]] * (1 + 1e-9)).all()


def test_more_components_than_the_rank_of_sparse_rows_are_refused():
    X, _ = counted([(7, 500)], p=1200)
    with pytest.raises(InputError, match="numerical rank 7 "):
        found = SparseSource("array", X, "X", PLAIN)
        check_k(12, found.n, found.p, found.leading_axes(12).rank)


@pytest.mark.parametrize("fault", ["passed over", "not converged"])
def test_where_one_vector_at_a_time_fails_blocks_give_the_axes(monkeypatch, fault):
    X, exact = counted([(3, 400), (5, 200), (60, 20)])
    eigsh, asked = linalg.eigsh, []

    def wrong(C, k, **options):
        asked.append(k)
        if fault == "not converged":
            raise linalg.ArpackNoConvergence("no", np.zeros(0), np.zeros((3000, 0)))
        values, vectors = eigsh(C, k + 1, **options)
        keep = np.arange(k + 1) != k - 1  # in increasing order: the second largest is left out
        return values[keep], vectors[:, keep]

    monkeypatch.setattr(linalg, "eigsh", wrong)
    axes = SparseSource("array", X, "X", PLAIN).leading_axes(12)
    assert asked == [14]
    np.testing.assert_allclose(axes.values[:12], exact[:12], rtol=1e-8, atol=1e-15)
