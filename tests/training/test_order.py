"""The order of very many rows is computed where it is asked for, and is a permutation that looks random."""

from types import SimpleNamespace

import numpy as np
import pytest

from sigmapca_cli.sources.memory import MemorySource
from sigmapca_cli.sources.options import Standardisation
from sigmapca_cli.training import order as orders
from sigmapca_cli.training.batches import Batches
from sigmapca_cli.training.order import Scattered
from sigmapca_cli.training.sharded import ShardedBatches


def scattered(n, seed=0):
    return Scattered.of(n, np.random.default_rng(seed))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 16, 17, 255, 256, 1000, 4097, 65_537])
def test_it_is_a_permutation(n):
    order = scattered(n)[:]
    assert order.dtype == np.int64 and len(scattered(n)) == n
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(scattered(n)[n // 3 : n // 2], order[n // 3 : n // 2])


def test_it_looks_random_and_differs_by_seed():
    n = 50_000
    order, other = scattered(n)[:], scattered(n, 1)[:]
    place = np.arange(n)
    for a, b in ((order, place), (order, other), (order[1:], order[:-1]), (order[2:], order[:-2])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.02  # 1/√n = 0.0045
    assert (order == place).sum() < 10
    # Rows of a batch come from everywhere: the number from each tenth of the rows is as for independent draws.
    counts = np.stack([np.bincount(order[i : i + 500] * 10 // n, minlength=10) for i in range(0, n, 500)])
    assert 0.7 < counts.var() / 45 < 1.3


def test_any_part_of_a_very_long_one_is_there_at_once():
    order = scattered(10**12)
    found = np.concatenate([order[:1000], order[10**12 - 1000 :]])
    assert len(np.unique(found)) == 2000 and found.min() >= 0 and found.max() < 10**12
    assert 0.4e12 < found.mean() < 0.6e12


@pytest.mark.parametrize(("n", "batch"), [(103, 8), (96, 8), (50, 7)])
def test_ranks_share_it_as_they_share_one_in_memory(monkeypatch, n, batch):
    monkeypatch.setattr(orders, "MOST_HELD", 10)
    source = MemorySource("array", np.random.default_rng(0).standard_normal((n, 3)), Standardisation("none"))
    whole = Batches(source, batch, 3).order(1)
    assert isinstance(whole, Scattered)
    held = whole[:]
    for rank in range(2):
        ranks = SimpleNamespace(rank=rank, world=2)
        own = ShardedBatches(source, batch, 3, ranks, "float32", by_batch=False)
        computed = own.order(1)
        monkeypatch.setattr(Batches, "order", lambda self, epoch: held)
        kept = own.order(1)
        monkeypatch.undo()
        monkeypatch.setattr(orders, "MOST_HELD", 10)
        assert np.array_equal(computed[:], kept) and np.array_equal(computed[3:9], kept[3:9])


def test_batches_of_a_computed_order_are_all_rows_once(monkeypatch):
    monkeypatch.setattr(orders, "MOST_HELD", 10)
    X = np.arange(200, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32)
    source = MemorySource("array", X, Standardisation("none"))
    batches = Batches(source, 8, 0)
    seen = np.concatenate([batch.x[:, 0].copy() for batch in batches.epoch(2)])
    assert np.array_equal(np.sort(seen), np.sort(source.take(np.arange(200))[:, 0]))
    late = np.concatenate([batch.x[:, 0].copy() for batch in Batches(source, 8, 0).epoch(2, first=5)])
    assert np.array_equal(late, seen[40:])
