"""Solvers on shares of the rows equal those on all rows, and a rank reads no other rows than its own."""

from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import every
from thread_ranks import on_ranks

from sigmapca_cli.data.cleaning.outliers import owners_of
from sigmapca_cli.data.matrix.arrays import ArraySource
from sigmapca_cli.data.on_disk.row_file import RowFile
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.data.subsample import one_per_stretch
from sigmapca_cli.evaluation.certify import certify_run
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.methods.direct import pca_svd, ppca
from sigmapca_cli.runner.shared import check_shares
from sigmapca_cli.solvers.fourth_moments.choose import chosen_lam
from sigmapca_cli.solvers.fourth_moments.fit import moments_fit
from sigmapca_cli.solvers.fourth_moments.maximum import maximise
from sigmapca_cli.solvers.main_loss.fit import lica_fit, newton_fit
from sigmapca_cli.solvers.newton import polish, solve
from sigmapca_cli.solvers.rows import projection
from sigmapca_cli.solvers.rows.projection import quantile_of
from sigmapca_cli.system import row_shards
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import blas

N, P, K, WORLD = 7001, 12, 4, 3


class OnDisk(ArraySource):
    """A matrix in a file, in small blocks; `read` holds the first and last row of each block that was read."""

    def __init__(self, X: np.ndarray) -> None:
        file = RowFile.scratch(X.shape, X.dtype)
        file.write(0, X)
        self.read: list[tuple[int, int]] = []
        super().__init__(file, "a file", Standardisation())

    def _block_size(self) -> int:
        return 500

    def _gather(self, rows: np.ndarray | slice) -> np.ndarray:
        if isinstance(rows, slice):
            self.read.append((rows.start, rows.stop))
        return super()._gather(rows)


def rows(n: int = N, p: int = P, k: int = K, seed: int = 0) -> np.ndarray:
    """Heavy-tailed sources of two pairs of equal variance, in noise, far from zero."""
    random = np.random.default_rng(seed)
    sources = random.laplace(size=(n, k)) * np.repeat([3.0, 2.0], k)[:k]
    mixing = np.linalg.qr(random.normal(size=(p, k)))[0].T
    return sources @ mixing + 0.1 * random.normal(size=(n, p)) + 5


X = rows()
METHODS = {
    "pca_svd": lambda source: (pca_svd(SimpleNamespace(k=K), source), {}),
    "ppca": lambda source: (
        ppca(SimpleNamespace(k=K, model=SimpleNamespace(ppca_encoder="table")), source),
        {},
    ),
    "newton": lambda source: newton_fit(source, K, a=4.0),
    "a=auto": lambda source: newton_fit(source, K),
    "starts": lambda source: newton_fit(source, K, a=3.0, starts=5),
    "newton clip": lambda source: newton_fit(source, K, a=4.0, clip=0.99),
    "lica": lambda source: lica_fit(source, K),
    "moments": lambda source: moments_fit(source, K),
    "whitened": lambda source: moments_fit(source, K, whiten=True, starts=2),
}


def close(one: dict, other: dict, tolerance: float) -> None:
    for name, value in one.items():
        x, y = np.asarray(value, float), np.asarray(other[name], float)
        assert np.allclose(x, y, rtol=tolerance, atol=tolerance), name


@pytest.fixture
def stages(monkeypatch):
    """Stages of few rows, so that subsets of these rows are taken too."""
    monkeypatch.setattr(solve, "LEVELS", (1000, 3000))
    monkeypatch.setattr("sigmapca_cli.solvers.fourth_moments.maximum.LEVELS", (1000, 3000))
    monkeypatch.setattr(polish, "LEVELS", (1000, 3000))


@pytest.mark.parametrize("method", every(METHODS, ["ppca", "a=auto", "newton clip", "whitened"]))
def test_shares_have_the_answer_of_all_rows(stages, method):
    def work(rank: int | None = None):
        source = OnDisk(X)
        solution, facts = METHODS[method](source)
        found = evaluate_solution(solution.W, solution.sigma, solution.encoder, source)
        return source.hash, solution, {**facts, **solution.extra}, found

    with blas(1):
        one_hash, one, facts, found = work()
    for hash_, solution, its_facts, its_found in on_ranks(WORLD, work):
        assert hash_ == one_hash
        for name in ("W", "sigma", "encoder", "decoder"):
            assert np.abs(getattr(solution, name) - getattr(one, name)).max() < 1e-10, name
        close({n: v for n, v in facts.items() if n != "residual"}, its_facts, 1e-8)
        close(found, its_found, 1e-5)  # kurtosis and negentropy are sums of float32 rows


def test_streamed_cumulants_and_polish_agree_to_the_rounding_of_float32(stages):
    def work(rank: int | None = None):
        source = OnDisk(X)
        polished = newton_fit(source, K, a=4.0, polish=True)[0].W
        Y = projection.project(source, K)[1]
        return polished, maximise(Y, tensor=1).R

    with blas(1):
        one = work()
    for found in on_ranks(WORLD, work):
        assert np.abs(found[0] - one[0]).max() < 1e-4
        assert np.abs(found[1] - one[1]).max() < 1e-6


def test_the_halves_that_choose_lam_are_those_of_one_process(stages):
    def work(rank: int | None = None):
        return chosen_lam(projection.project(OnDisk(X), K)[1])

    with blas(1):
        lam, agreement = work()
    assert agreement < 0.9999  # another choice of halves would change it
    for its_lam, its_agreement in on_ranks(WORLD, work):
        assert its_lam == lam and its_agreement == pytest.approx(agreement, abs=1e-9)


def test_many_features_and_few_rows(monkeypatch):
    """Without a covariance matrix: products with it are sums over the shares."""
    wide = rows(n=1300, p=2100)

    def work(rank: int | None = None):
        source = OnDisk(wide)
        return moments_fit(source, K, clip=0.99)[0].W, source.leading_axes(K).values[:K]

    with blas(1):
        W, values = work()
    for its_W, its_values in on_ranks(2, work):
        assert np.abs(its_values / values - 1).max() < 1e-10 and np.abs(its_W - W).max() < 1e-8


def test_a_rank_reads_its_own_rows_only():
    def work(rank: int):
        source = OnDisk(X)
        moments_fit(source, K, clip=0.99)
        return row_shards.own(N), source.read

    for own, read in on_ranks(WORLD, work):
        # The blocks of the first pass are shared out whole.
        assert min(start for start, _ in read) > own.start - 500
        assert max(stop for _, stop in read) < own.stop + 500


def test_ranks_take_the_subset_that_one_process_takes(monkeypatch):
    monkeypatch.setattr(projection, "LARGEST_ROWS", 2000)
    with blas(1):
        one = projection.project(OnDisk(X), K)[1]
    found = on_ranks(WORLD, lambda rank: projection.project(OnDisk(X), K)[1])
    assert len(one) == 2000 and np.abs(np.concatenate(found) - one).max() < 1e-5
    whole = np.arange(N)
    index = on_ranks(WORLD, lambda rank: row_shards.own_of(one_per_stretch(N, 100), N))
    assert np.array_equal(np.concatenate(index), one_per_stretch(N, 100))
    assert np.array_equal(np.concatenate(on_ranks(WORLD, lambda rank: whole[row_shards.own(N)])), whole)


def test_shares_of_many_rows_begin_at_whole_blocks():
    starts = on_ranks(WORLD, lambda rank: row_shards.own(10_000_001))
    assert all(own.start % row_shards.ALIGNED == 0 for own in starts) and starts[-1].stop == 10_000_001
    assert [own.stop for own in starts[:-1]] == [own.start for own in starts[1:]]


def test_the_certificate_is_that_of_one_process():
    solution, facts = moments_fit(OnDisk(X), K)
    run = SimpleNamespace(
        filters=solution.W,
        rotation=None,
        evaluation=facts,
        attrs={},
        config={"model": {"objective": "main"}, "solver": {"name": "moments"}},
    )
    one = certify_run(run, OnDisk(X), rows=2000)
    for found in on_ranks(WORLD, lambda rank: certify_run(run, OnDisk(X), rows=2000)):
        assert found.n == one.n == 2000 and (found.verdict == one.verdict).all()
        off = ~np.eye(K, dtype=bool)
        assert np.abs(found.curvature / one.curvature - 1)[off].max() < 1e-6


def test_outliers_are_found_wherever_they_are():
    spoilt = X.copy()
    spoilt[N - 5, 3] = 3e4
    (one,) = owners_of(OnDisk(spoilt))
    assert one.rows == [N - 5]
    for found in on_ranks(WORLD, lambda rank: owners_of(OnDisk(spoilt))):
        assert found[0].rows == one.rows and found[0].share == pytest.approx(one.share)


def test_the_row_that_carries_a_component_is_named_by_its_number_in_the_file():
    spoilt = X.copy()
    spoilt[N - 5] += 200 * np.linalg.svd(X - X.mean(0), full_matrices=False)[2][1]

    def work(rank: int | None = None):
        return maximise(projection.project(OnDisk(spoilt), K)[1]).notes

    assert any(f"row {N - 4} makes up" in note for note in work())
    assert on_ranks(WORLD, work) == [work()] * WORLD


def test_quantiles_of_shares():
    norms = np.random.default_rng(3).exponential(size=1001)
    for quantile in (0.5, 0.9, 0.999, 0.9999, 1.0):
        found = on_ranks(WORLD, lambda rank, q=quantile: quantile_of(norms[row_shards.own(1001)], q, 1001))
        assert found == [pytest.approx(np.quantile(norms, quantile), rel=1e-12)] * WORLD


def test_what_one_rank_refuses_all_refuse():
    spoilt = X.copy()
    spoilt[N - 1, 2] = np.nan
    found = on_ranks(WORLD, lambda rank: OnDisk(spoilt))
    assert all(isinstance(problem, InputError) for problem in found)
    assert f"NaN at row {N - 1}, column 2" in str(found[0])


def test_ranks_with_other_features_or_more_ranks_than_rows_are_refused():
    found = on_ranks(2, lambda rank: OnDisk(X[:, : 5 + rank]))
    assert all("data of 5 and of 6 features" in str(problem) for problem in found)
    with pytest.raises(InputError, match="7001 rows for 8000 processes"):
        check_shares(OnDisk(X), 8000)
