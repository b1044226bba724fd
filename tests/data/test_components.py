"""How many components, and rows that own one."""

import logging
import re

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

from sigmapca_cli.data.cleaning.outliers import in_words, owned_components, warn_about, warnings_about
from sigmapca_cli.data.in_memory import MemorySource
from sigmapca_cli.data.n_components import by_broken_stick, by_mdl, count_of
from sigmapca_cli.data.standardisation import Standardisation
from sigmapca_cli.settings.schema import Config, components
from sigmapca_cli.system.errors import InputError

RNG = np.random.default_rng(0)


def spectrum(X):
    return np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("k", [0.3, 0.9, 0.95, 0.99, "mle"])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_shares_and_mle_are_those_of_scikit_learn(load, k, unit):
    X = load().data
    expected = PCA(k, svd_solver="full").fit(X).n_components_
    assert count_of(k, spectrum(X * unit), len(X)) == expected


@pytest.mark.parametrize("k", [1, 3, 6])
def test_planted_components_are_counted(k):
    X = 3 * RNG.normal(size=(4000, k)) @ np.linalg.qr(RNG.normal(size=(12, k)))[0].T + 0.3 * RNG.normal(
        size=(4000, 12)
    )
    values = spectrum(X)
    assert by_mdl(values, 4000) == k == count_of("mle", values, 4000)
    assert count_of("all", values, 4000) == 12


@pytest.mark.parametrize("group", [1, 3, 6])
def test_mdl_of_data_without_noise_is_the_rank_whatever_its_variances(group):
    """The last sources of equal variance are no noise where the other directions have none at all."""
    X = RNG.laplace(size=(2000, 6)) * 0.7 ** (np.arange(6) // group) @ RNG.normal(size=(6, 16))
    assert count_of("mdl", spectrum(X), 2000) == 6
    noisy = 3 * RNG.normal(size=(4000, 3)) @ RNG.normal(size=(3, 12)) + 0.3 * RNG.normal(size=(4000, 12))
    values = np.append(spectrum(noisy), 0.0)  # a constant feature says nothing about noise
    assert count_of("mdl", values, 4000, constant=1) == 3


def test_criteria_stay_within_the_rank():
    X = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 10))
    for k in ("all", "auto", "mdl", "mle", 0.999999):
        assert 1 <= count_of(k, spectrum(X), 300) <= 4
    few = RNG.normal(size=(5, 10))
    assert count_of("auto", spectrum(few), 5) == 4
    assert count_of("auto", np.ones(100), 1000) == 32
    assert count_of(7, spectrum(X), 300) == 7  # a number is checked elsewhere, where it can be refused


def test_broken_stick_by_hand():
    """Pieces of a stick broken in three: 11/18, 5/18, 2/18."""
    assert by_broken_stick(np.array([12, 4, 2.0])) == 1
    assert by_broken_stick(np.array([12, 5.5, 0.5])) == 2
    assert by_broken_stick(np.zeros(3)) == 0


@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, 0.0, float("nan"), True, "many", None])
def test_other_words_for_k_are_refused(value):
    with pytest.raises(InputError, match="k="):
        components(value)
    with pytest.raises(InputError):
        Config(k=value)


def test_one_row_that_owns_a_component_is_found():
    X = RNG.laplace(size=(20_000, 6)) @ RNG.normal(size=(6, 6))
    assert warnings_about(MemorySource("x", X, Standardisation("none"))) == []
    X[1234] *= 1e4
    (said,) = warnings_about(MemorySource("x", X, Standardisation("none")))
    assert "row 1234 (counted from 0) has 100 % of the variance of principal component 1" in said


def test_a_few_rows_that_own_one_together_in_any_block():
    X = RNG.normal(size=(5000, 5)) * [9, 3, 2, 1.5, 1]
    X[[10, 2500, 4999], 4] += [300, -280, 250]
    values, E = np.linalg.eigh(np.cov(X.T, bias=True))
    centred = X - X.mean(axis=0)
    blocks = [centred[i : i + 700] for i in range(0, 5000, 700)]

    def project(axes):
        return (block @ axes for block in blocks)

    found = owned_components(project, E[:, ::-1], values[::-1], 5000, float(values.sum()))
    assert [(o.component, o.rows) for o in found] == [(2, [10, 2500])] or found[0].rows == [10, 2500, 4999]
    assert re.search(r"row 10, row 2500.* have \d+ % of the variance", in_words(found, "row {}".format))
    assert owned_components(project, E[:, ::-1], values[::-1], 49, 1.0) == []


@pytest.mark.parametrize("draw", [RNG.laplace, RNG.normal, RNG.uniform])
@pytest.mark.parametrize("n", [49, 60, 150, 3000])
def test_ordinary_rows_are_not_accused(draw, n):
    X = draw(size=(n, 4))
    assert not [
        w
        for w in warnings_about(MemorySource("x", X, Standardisation("none")))
        if "of the variance of principal component" in w
    ]


def test_units_that_differ_by_more_than_100_are_said():
    X = RNG.normal(size=(200, 3)) * [1, 50, 80]
    assert warnings_about(MemorySource("x", X, Standardisation("none"))) == []
    X[:, 2] *= 2
    (said,) = warnings_about(MemorySource("x", X, Standardisation("none")))
    assert "the standard deviation of feature 2 is" in said and "data.standardise=feature" in said
    assert warnings_about(MemorySource("x", X, Standardisation("feature"))) == []


def test_the_same_data_are_warned_of_once(caplog):
    """Further runs of a sweep on the same data note it in their own logs."""
    source = MemorySource("x", RNG.normal(size=(200, 2)) * [1, 1000], Standardisation("none"))
    log = logging.getLogger("sigmapca")
    with caplog.at_level(logging.INFO, "sigmapca"):
        warn_about(source, log)
        warn_about(source, log)
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO]
