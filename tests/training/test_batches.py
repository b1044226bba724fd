"""Every row once an epoch, in an order that the seed and the epoch alone decide."""

import numpy as np
import pytest

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.training import batches as orders
from sigmapca_cli.training.batches import Batch, Batches, through_buffer


def source(n: int = 101):
    return build(DataConfig(name="planted", n=n, p=8, k=4, group=2, standardise="none"))


def copied(batches):
    return [Batch(b.x.copy(), b.power) for b in batches]


def test_a_short_last_batch_works():
    sizes = [len(b.x) for b in Batches(source(), 10, 0).epoch(0)]
    assert sizes == [10] * 10  # the last row alone has no variance
    assert [len(b.x) for b in Batches(source(105), 10, 0).epoch(0)] == [10] * 10 + [5]


def test_every_row_once_and_reshuffled():
    rows = source(400)
    batches = Batches(rows, 32, 5)
    orders = [batches.order(epoch) for epoch in range(2)]
    assert not np.array_equal(*orders)
    for order in orders:
        assert np.array_equal(np.sort(order), np.arange(400))
    seen = np.concatenate([b.x for b in copied(batches.epoch(0))])
    assert np.array_equal(seen, rows.take(orders[0][: len(seen)]))


@pytest.mark.parametrize("first", [0, 1, 7, 12])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("through", [None, 30])
def test_position_says_it_all(first, centre, through):
    batches = Batches(source(400), 32, 5, centre=centre, through=through)
    whole, rest = copied(batches.epoch(3)), copied(batches.epoch(3, first))
    assert len(rest) == len(whole) - first
    for a, b in zip(rest, whole[first:], strict=True):
        assert np.array_equal(a.x, b.x) and a.power == b.power


def test_centred_batches_have_no_mean_and_know_their_power():
    plain, centred = Batches(source(400), 32, 5), Batches(source(400), 32, 5, centre=True)
    for a, b in zip(plain.epoch(0), centred.epoch(0), strict=True):
        expected = a.x - a.x.mean(0)
        np.testing.assert_allclose(b.x, expected, atol=1e-5)
        np.testing.assert_allclose(b.power, np.square(expected).sum(1).mean(), rtol=1e-5)


class Drawn:
    """A generator that remembers the places it draws, and leaves the rest of the buffer in order."""

    def __init__(self):
        self.generator, self.places = np.random.default_rng(0), []

    def integers(self, *arguments, **named):
        found = self.generator.integers(*arguments, **named)
        self.places += found.tolist()
        return found

    def shuffle(self, rows):
        """In order."""


@pytest.mark.parametrize(("n", "size"), [(1000, 37), (1000, 1), (1000, 999), (64, 8)])
@pytest.mark.parametrize("piece", [1 << 20, 50])
def test_rows_leave_the_buffer_as_one_by_one(n, size, piece, monkeypatch):
    monkeypatch.setattr(orders, "PIECE", piece)
    generator = Drawn()
    order = through_buffer(n, size, generator)
    held, expected = list(range(size)), []
    for row, place in zip(range(size, n), generator.places, strict=True):
        expected.append(held[place])
        held[place] = row
    assert order.tolist() == expected + held


def test_a_buffer_lets_rows_wait_but_not_come_early():
    n, size = 5000, 200
    order = Batches(source(n), 32, 5, through=size).order(0)
    assert np.array_equal(np.sort(order), np.arange(n))
    early = order - np.arange(n)
    assert early.max() == size - 1 and early.min() < -2 * size
    assert not np.array_equal(order, Batches(source(n), 32, 5, through=size).order(1))
    # Its last rows are as well mixed as the others.
    assert abs(np.corrcoef(order[-size:], np.arange(size))[0, 1]) < 0.3


def test_a_buffer_for_all_rows_is_a_full_shuffle():
    rows = source(400)
    for through in (400, 10_000):
        assert np.array_equal(Batches(rows, 32, 5, through=through).order(2), Batches(rows, 32, 5).order(2))


def test_batch_larger_than_the_data():
    assert [len(b.x) for b in Batches(source(50), 128, 0).epoch(0)] == [50]
