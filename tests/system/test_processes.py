"""Work spread over threads: the order of the answers, how far ahead, and errors."""

import numpy as np
import pytest

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.system.processes import blas, mapped


@pytest.fixture(params=["1", "3"])
def threads(request, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", request.param)
    return int(request.param)


def test_answers_come_in_order_and_items_are_not_taken_far_ahead(threads):
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    for place, found in enumerate(mapped(lambda number: number**2, items())):
        assert found == place**2
        assert len(taken) <= place + 2 * threads + 1
    assert len(taken) == 50


def test_an_error_in_one_item_is_raised_where_the_answers_are_read(threads):
    def fails(number):
        if number == 7:
            raise ValueError("seven")
        return number

    found = []
    with pytest.raises(ValueError, match="seven"):
        for number in mapped(fails, range(20)):
            found.append(number)
    assert found == list(range(7))


def test_moments_and_metrics_have_the_same_bits_on_any_number_of_threads(monkeypatch):
    found = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        source = build(DataConfig(name="natural", images=40))
        W = np.linalg.qr(np.random.default_rng(0).normal(size=(source.p, 5)))[0]
        metrics = evaluate_solution(W, np.ones(5), None, source)
        found.append([source.covariance()[1], *(metrics[n] for n in ("kurtosis", "negentropy", "pca_sigma"))])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_all_products_have_the_threads_that_are_asked_for():
    import scipy.linalg  # noqa: F401  (it brings a library of its own)
    from threadpoolctl import threadpool_info

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    before = threads()
    with blas(2):
        assert threads() == {2}
        with blas(1):
            assert threads() == {1}
    assert threads() == before
