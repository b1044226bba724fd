"""Rows in time are told from rows without an order, and from rows that are only sorted."""

import numpy as np
import pandas as pd
import pytest
from array_sources import source_of
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from source_kinds import series

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.describe.describe import describe
from sigmapca_cli.data.halves import halves_of
from sigmapca_cli.data.row_order import order_in, order_of, row_order
from sigmapca_cli.system.errors import InputError


def components(X):
    X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-9)
    return X @ np.linalg.svd(X, full_matrices=False)[2].T


@pytest.mark.parametrize("kind", ["Gaussian", "laplace"])
@pytest.mark.parametrize("phi", [0.995, 0.8, 0.4, -0.5])
def test_series_are_in_time(kind, phi):
    S = series(kind, 500, 0, np.full(3, phi), 1.0)
    assert order_of(S).reason == "neighbours"
    assert not order_of(np.random.default_rng(0).permutation(S)).ordered


def test_returns_without_correlation_are_in_time_by_their_size():
    rng = np.random.default_rng(1)
    returns = rng.normal(size=(2000, 3)) * np.exp(series("Gaussian", 2000, 2, np.full(3, 0.98), 1.0))
    found = order_of(returns)
    assert found.ordered and found.by_time and not found.in_time  # their spectra are flat


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_a_column_of_dates_counts_for_spectra_only_where_values_correlate_with_earlier_ones(tmp_path, size):
    rng, place = np.random.default_rng(1), tmp_path / "rows.csv"
    dates = pd.date_range("2020-01-01", periods=1000).strftime("%Y-%m-%d")
    slow = np.exp(size * series("Gaussian", 1000, 2, np.full(1, 0.98), 1.0))
    for values, coloured in (
        (rng.laplace(size=(1000, 3)) * slow * [3, 2, 1], False),
        (series("laplace", 1000, 0), True),
    ):
        pd.DataFrame(values).add_prefix("s").assign(date=dates).to_csv(place, index=False)
        found = order_in(source_of(place, drop=["date"]))
        assert (found.reason, found.by_time, found.in_time) == ("time", True, coloured)
        facts, _ = describe(place)
        assert facts["task"] == ("separation" if coloured else "table")
        assert halves_of(DataConfig(name="array", path=str(place), drop=["date"])).by_time


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_a_table_sorted_by_a_class_or_a_column_is_not_in_time(load):
    X, y = load(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(X))
    X, y = X[shuffled], y[shuffled]
    assert order_of(components(X)).reason == "exchangeable"
    for key in (y, X[:, 2]):
        found = order_of(components(X[np.argsort(key, kind="stable")]))
        assert not found.ordered
    assert order_of(components(X[np.argsort(y, kind="stable")])).reason == "sorted"


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: rng.standard_t(3, shape),
        lambda rng, shape: rng.poisson(2, shape),
        lambda rng, shape: rng.random(shape) < 0.1,
    ],
)
def test_white_rows_are_rarely_in_time(draw):
    wrong = sum(order_of(draw(np.random.default_rng(seed), (300, 6)) * 1.0).ordered for seed in range(60))
    assert wrong <= 1


def test_a_sorted_column_counts_nothing():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.sort(rng.normal(size=1000)), rng.normal(size=(1000, 3))])
    assert not order_of(X).ordered


def test_no_window_goes_across_pieces():
    """64 pieces of one row each have no neighbours, whatever their values."""
    rng = np.random.default_rng(0)
    assert not order_of(np.cumsum(rng.normal(size=(64, 2)), axis=0), np.arange(1, 64)).ordered


def test_sounds_and_windows_are_known_and_the_key_decides(tmp_path):
    sound = build(DataConfig(name="signals"))
    assert row_order(sound, sound.take(np.arange(sound.n))).reason == "sound"
    pictures = build(DataConfig(name="natural", images=4))
    found = row_order(pictures, pictures.take(np.arange(1000)))
    assert found.ordered and not found.in_time
    np.save(tmp_path / "x.npy", series("Gaussian", 500, 0))
    for asked in (True, False):
        source = source_of(tmp_path / "x.npy", ordered=asked)
        assert (row_order(source, source.take(np.arange(500))).ordered, source.ordered) == (asked, asked)
    with pytest.raises(InputError, match="ordered"):
        DataConfig(name="natural", ordered=True)
    with pytest.raises(InputError, match="ordered"):
        DataConfig(name="array", ordered="sometimes")


def test_rows_that_are_repeated_are_not_in_time():
    rng = np.random.default_rng(0)
    assert not order_of(np.repeat(rng.normal(size=(300, 4)), rng.integers(1, 5, 300), axis=0)).ordered
    assert not order_of(rng.integers(0, 2, (2000, 2)) * 1.0).ordered
