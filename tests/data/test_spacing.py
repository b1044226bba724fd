"""Rows that stand for all rows: the same ones as ever, and not in step with the rows of an image."""

import numpy as np
import pytest

from sigmapca_cli.data.subsample import evenly_spaced, one_per_stretch


@pytest.mark.parametrize(("n", "most"), [(0, 5), (1, 5), (7, 64), (64, 64), (1000, 64), (50_001, 50_000)])
def test_evenly_spaced_rows_are_distinct_in_order_and_as_many_as_allowed(n, most):
    index = evenly_spaced(n, most)
    assert len(index) == min(n, most) and (np.diff(index) > 0).all()
    if n:
        assert index[0] == 0 and index[-1] == n - 1
        np.testing.assert_array_less(np.diff(index), n / len(index) + 2)


def test_the_rows_that_results_of_before_rest_on_are_the_same():
    """Certificates, runs and exact resumes depend on these numbers: they may not change."""
    assert evenly_spaced(1000, 7).tolist() == [0, 166, 333, 499, 666, 832, 999]
    assert one_per_stretch(1000, 5).tolist() == [127, 253, 408, 603, 962]
    assert one_per_stretch(1000, 5, seed=1).tolist() == [102, 390, 428, 789, 862]


def test_one_row_comes_from_each_stretch():
    index = one_per_stretch(10_000, 100)
    assert (index // 100 == np.arange(100)).all()
    assert (
        len(set((index % 100).tolist())) > 50
    )  # no constant stride, which would match the width of an image
    assert not np.array_equal(index, one_per_stretch(10_000, 100, seed=1))
