"""Rows on disk: how many passes each way to a solution makes, what is kept of them, and files of a billion rows."""

import logging

import numpy as np
import pytest
from methods_helpers import composed
from wide_helpers import solved

from sigmapca_cli.data import build, subsample
from sigmapca_cli.data import source as base
from sigmapca_cli.data.cleaning import outliers
from sigmapca_cli.data.cleaning.outliers import warnings_about
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.matrix import arrays
from sigmapca_cli.data.matrix.arrays import ArraySource
from sigmapca_cli.data.moments.accumulate import block_moments
from sigmapca_cli.data.on_disk import progress, row_file
from sigmapca_cli.data.on_disk.row_file import RowFile
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.runner import footprint
from sigmapca_cli.runner.execute import load_source
from sigmapca_cli.solvers.rows import projection
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.training.batches import BLOCK_ROWS

N, P, K = 40_000, 8, 3


@pytest.fixture(scope="module")
def X():
    random = np.random.default_rng(0)
    s = random.laplace(size=(N, K)) * (3, 2, 1)
    return (s @ np.linalg.qr(random.standard_normal((P, K)))[0].T + 0.3 * random.normal(size=(N, P))).astype(
        "f4"
    )


class Counting(RowFile):
    """A file of rows that counts how many were read; each source of a test makes one."""

    read = 0

    def fill(self, row, column, target):
        self.read += len(target) if target.ndim == 2 else 1
        super().fill(row, column, target)


def on_disk(X, standardise="feature"):
    """A source of rows in a file, and the file."""
    data = Counting.scratch(X.shape, X.dtype)
    data.write(0, X)
    source = ArraySource(data, "x.npy", Standardisation(standardise))
    return source, data


@pytest.fixture
def large(monkeypatch):
    """Treat the rows as if they were too many to be kept, projected for the outliers, or all."""
    monkeypatch.setattr(subsample, "MOST_ROWS", 20_000)
    monkeypatch.setattr(outliers, "WORK", 0)


@pytest.mark.parametrize(
    ("way", "passes"),
    [
        (("pca_svd",), 1),
        (("ppca",), 1),
        (("nlpca", "solver=moments"), 2),
        (("nlpca", "solver=newton", "a=4"), 2),
    ],
    ids=["pca_svd", "ppca", "moments", "newton"],
)
def test_passes_over_the_rows(X, large, way, passes):
    source, data = on_disk(X)
    warnings_about(source)
    solution, _ = solved(source, *way, k=K)
    values = evaluate_solution(solution.W, solution.sigma, solution.encoder, source)
    # Besides, 64 rows are read for the hash.
    assert data.read == passes * N + 64
    assert values["rows_measured"] == 20_000


def test_newton_on_a_part_of_the_rows_reads_that_part(X, large, monkeypatch):
    monkeypatch.setattr(projection, "LARGEST_ROWS", 5000)
    source, data = on_disk(X)
    solved(source, "nlpca", "solver=newton", "a=4", k=K)
    assert N + 64 + 5000 <= data.read < 2 * N + 64  # one row of 8: those between them are read with them


def test_training_reads_one_pass_and_its_batches(X, large, monkeypatch):
    monkeypatch.setattr(row_file, "GAP_BYTES", 0)  # no row is read that is not asked for
    source, data = on_disk(X)
    solution, cfg = solved(source, "nlpca", "steps=20", k=K)
    before = data.read
    evaluate_solution(solution.W, solution.sigma, solution.encoder, source)
    assert data.read == before
    # The convergence is measured on some 50,000 rows, however many there are; of batches, three blocks are gathered.
    assert N + 20 * cfg.batch_size < before < N + 52_000 + 3 * BLOCK_ROWS


def test_outliers_are_looked_for_where_that_takes_a_second(X, monkeypatch):
    source, data = on_disk(X)
    X = X.copy()
    X[1234] = 1e4
    source, data = on_disk(X)
    assert "row 1234" in warnings_about(source)[0]
    assert data.read == 3 * N + 64  # the third pass compares the rows of a small table with each other


def test_what_is_kept_measures_what_all_rows_measure(X, large):
    source, _ = on_disk(X)
    W = source.leading_axes(K).up_to(K)
    few = evaluate_solution(W, np.ones(K), None, source)
    source.sample = None
    all_ = evaluate_solution(W, np.ones(K), None, source)
    assert "rows_measured" not in all_
    apart = np.abs(few.pop("kurtosis") - all_["kurtosis"])
    assert (apart > 0).all() and (apart < 0.5).all()  # Laplace: a standard error of 0.2
    few.pop("rows_measured")
    for name, value in few.items():
        if name != "negentropy":
            np.testing.assert_array_equal(value, all_[name], err_msg=name)


def test_few_rows_and_rows_in_memory_are_measured_whole(X):
    for source in (on_disk(X)[0], ArraySource(X, "x.npy", Standardisation("none"))):
        W = source.leading_axes(K).up_to(K)
        assert "rows_measured" not in evaluate_solution(W, np.ones(K), None, source)
    dtype = np.dtype("f4")
    assert subsample.RowSample.of((10**9, 64), dtype).count == subsample.MOST_ROWS
    assert subsample.RowSample.of((10**9, 2048), dtype).count == 1 << 14
    assert subsample.RowSample.of((10**9, 2048), np.dtype("f8")) is None  # too few would be kept
    assert subsample.RowSample.of((10**9, 2049), dtype) is None  # many passes are made anyway
    assert subsample.RowSample.of((1 << 19, 64), dtype) is None


@pytest.mark.parametrize("standardise", ["none", "feature"])
def test_one_pass_has_the_digits_of_two_passes_in_float64(standardise):
    random = np.random.default_rng(1)
    Z = random.standard_normal((50_000, P)) @ random.standard_normal((P, P))
    X = Z + 1e4 * Z.std(axis=0)  # mean/std = 1e4
    source, data = on_disk(X, standardise)
    mean = X.mean(axis=0, dtype=np.longdouble)
    centred = (X - mean).astype(np.longdouble)
    exact = (centred.T @ centred / len(X)).astype(np.float64)
    found = source.moments()
    np.testing.assert_allclose(found.mean, mean.astype(np.float64), rtol=1e-14)
    np.testing.assert_allclose(found.second, exact, rtol=1e-10, atol=1e-10 * exact.diagonal().max())
    assert data.read == len(X) + 64
    # The formula that needs no shift has lost half of the digits.
    naive = X.T @ X / len(X) - np.outer(X.mean(axis=0), X.mean(axis=0))
    assert np.abs(naive / exact - 1).max() > 1e-9


def test_a_thread_uses_the_memory_of_a_block_again_and_no_result_refers_to_it(X):
    first = block_moments(X[:1000])
    mean, second = first.mean.copy(), first.second.copy()
    block_moments(X[1000:3000])
    np.testing.assert_array_equal(first.mean, mean)
    np.testing.assert_array_equal(first.second, second)
    x = X[:1000].astype(np.float64)
    np.testing.assert_allclose(second, np.cov(x.T, bias=True), rtol=1e-12, atol=1e-13)


@pytest.fixture(scope="module")
def billion(tmp_path_factory):
    """A sparse file of 1e9 × 64 float32, 256 GB that take no room, with a few rows that are not zero."""
    path = tmp_path_factory.mktemp("rows") / "billion.npy"
    data = np.lib.format.open_memmap(path, "w+", np.float32, (10**9, 64))
    for row in PLACED:
        data[row] = row % 1000 + np.arange(64)
    del data
    return path


PLACED = (0, 2**25 + 1, 2**31 + 5 >> 2, 10**9 - 1)  # offsets beyond 2³¹ and 2³² bytes, and values


def test_a_billion_rows_are_planned_before_the_first_pass(billion, monkeypatch, caplog):
    cfg = composed("pca_svd", "k=4", "data=array", f"data.path={billion}")
    monkeypatch.setattr(footprint, "memory_left", lambda: 1e5)
    with pytest.raises(InputError, match=r"k=4 of 1000000000 rows × 64 features needs about 0\.0 GB"):
        load_source(cfg)
    newton = composed("nlpca", "k=32", "solver=newton", "data=array", f"data.path={billion}")
    assert footprint.forecast_of(cfg)  # asked without a pass
    monkeypatch.setattr(footprint, "memory_left", lambda: 1e12)
    # 2,000,000 rows are projected, not all: 2·2e6·32 numbers of 8 bytes
    assert 1.0e9 < footprint.bytes_needed(newton, 10**9, 64) < 1.2e9
    assert footprint.bytes_needed(cfg, 10**9, 64) < 1e6

    class Enough(Exception):
        pass

    def stop(self, row, column, target):
        if row > 10**5:
            raise Enough
        return fill(self, row, column, target)

    fill = RowFile.fill
    monkeypatch.setattr(progress, "MEASURED_SECONDS", 0.0)
    monkeypatch.setattr(ArraySource, "_fingerprint", lambda self: b"")
    monkeypatch.setattr(RowFile, "fill", stop)
    with caplog.at_level(logging.WARNING), pytest.raises(Enough):
        load_source(cfg)
    (words,) = [r.getMessage() for r in caplog.records]
    assert "1000000000 rows × 64 features, 256.0 GB in a file: about" in words
    assert words.endswith("left of this pass over the rows; the run takes about 0.3 GB of memory")


def test_rows_far_in_a_file_are_read_from_their_place(billion, monkeypatch):
    table = arrays.read_one(billion, DataConfig(name="array", path=str(billion)))
    assert isinstance(table.data, RowFile)
    found = table.data.gather(np.array(PLACED))
    np.testing.assert_array_equal(found, np.array(PLACED)[:, None] % 1000 + np.arange(64))
    for row in PLACED:
        block = table.data.block(max(row - 1, 0), row + 1)
        np.testing.assert_array_equal(block[-1], row % 1000 + np.arange(64))
    taken = subsample.RowSample.of((10**9, 64), np.dtype("f4"))
    assert taken.index.dtype == np.int64 and 10**9 - 2000 < taken.index[-1] < 10**9
    assert (np.diff(taken.index) > 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_rows_are_standardised_in_pieces_with_the_same_bits(dtype, monkeypatch):
    for n, p in ((700, 5), (3, 60)):
        X = (50 * np.random.default_rng(0).standard_normal((n, p))).astype(dtype)
        source, index, out = ArraySource(X, "x", Standardisation("feature")), np.arange(n), []
        for size in (1 << 30, 64):  # of 60 features one row is more than 64 entries
            monkeypatch.setattr(base, "CACHED", size)
            out.append(source.take(index))
        np.testing.assert_array_equal(*out)


def test_rows_of_an_index_are_those_of_the_matrix_whether_near_or_far(X, monkeypatch):
    monkeypatch.setattr(row_file, "PICK_BYTES", 7 * X.itemsize * P)
    monkeypatch.setattr(row_file, "GAP_BYTES", 32 * X.itemsize * P)
    _, data = on_disk(X)
    random = np.random.default_rng(0)
    near = np.sort(random.choice(3000, 400, replace=False))
    gaps = np.array([0, 3, 4, 5, 4000, 4001, 39_999])
    for index in (
        near,
        near + 30_000,
        gaps,
        near[::-1],
        np.array([5, 5, 5]),
        np.arange(0),
        np.array([N - 1]),
    ):
        np.testing.assert_array_equal(data.gather(index), X[index])
    before, span = data.read, int(near[-1] - near[0]) + 1
    data.gather(near)
    assert data.read - before <= span  # near rows: at most all rows between them
    before = data.read
    data.gather(gaps)
    assert data.read - before == len(gaps)  # far rows: no others


def test_an_empty_sparse_file_has_constant_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "MEMORY_LIMIT", 0)
    path = tmp_path / "zeros.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (100_000, 4))
    source = build(DataConfig(name="array", path=str(path)))
    assert source.constant_features == 4
    with pytest.raises(InputError, match="every feature is constant"):
        solved(source, "pca_svd", k=2)
