"""The certificate of solver=moments says yes, not known and no, each where it must."""

from types import SimpleNamespace

import numpy as np
import pytest

from sigmapca_cli.evaluation.certificate import ARBITRARY, IDENTIFIED, REPELLED
from sigmapca_cli.evaluation.certify import certify_run
from sigmapca_cli.evaluation.fourth import certify_fourth
from sigmapca_cli.evaluation.words import explain
from sigmapca_cli.solvers.fourth_moments.maximum import maximise

LAM = 0.1


def principal(Y):
    return (Y - Y.mean(0)) @ np.linalg.eigh(np.cov(Y.T))[1][:, ::-1]


def answer(S):
    """The components that the solver finds, and what it says about them."""
    Y = principal(S)
    result = maximise(Y, LAM)
    return Y @ result.R, result


def drawn(seed, n=20_000):
    """Two Laplace and two uniform sources of one variance each, and three Gaussian ones, two of them alike."""
    rng = np.random.default_rng(seed)
    heavy = 3 * rng.laplace(size=(n, 2))
    light = 2 * rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, 2))
    return np.hstack([heavy, light, rng.normal(size=(n, 3)) * [1, 1, 0.5]])


def test_sources_are_identified_and_the_gaussian_pair_is_not():
    Y, result = answer(drawn(0))
    found = certify_fourth(Y, LAM)
    expected = np.full((7, 7), IDENTIFIED, object)
    expected[4, 5] = expected[5, 4] = ARBITRARY
    off = ~np.eye(7, dtype=bool)
    assert np.array_equal(found.verdict[off], expected[off])
    assert list(found.identified) == [True] * 4 + [False] * 2 + [True]
    np.testing.assert_allclose(found.sigma, result.sigma, rtol=1e-6)
    np.testing.assert_allclose(found.angle[:4, :4][off[:4, :4]], result.error[:4, :4][off[:4, :4]], rtol=1e-6)
    words = explain(found)
    assert words[0].startswith("5 of 7 components have identified axes")
    assert words[1].startswith("components 5 and 6 have equal variance")
    assert list(found.gaussian) == [False] * 4 + [True] * 3


def test_shape_is_what_holds_equal_variances_and_nothing_holds_the_others():
    found = certify_fourth(answer(drawn(1))[0], LAM)
    assert found.shape[0, 1] > 5 * found.shape_error[0, 1]
    assert (
        abs(found.shape[4, 6]) < 4 * found.shape_error[4, 6] < found.curvature[4, 6]
    )  # two Gaussian components
    assert found.variance_score[0, 1] < 4 < found.variance_score[1, 2]


def test_axes_that_f_leaves_are_repelled():
    """Two sources half a right angle away from their axes: F rises on both sides."""
    Y = drawn(2)[:, :2]
    turned = (Y - Y.mean(0)) @ np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    found = certify_fourth(turned, LAM)
    assert found.verdict[0, 1] == REPELLED and found.curvature[0, 1] < 0
    assert "F increases if they are rotated" in explain(found)[1]


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_nothing_depends_on_the_units(unit):
    Y = answer(drawn(3))[0]
    one, other = certify_fourth(Y, LAM), certify_fourth(unit * Y, LAM)
    np.testing.assert_allclose(other.curvature, one.curvature, rtol=1e-6)
    np.testing.assert_allclose(other.score, one.score, rtol=1e-6)


def test_a_run_is_certified_by_its_own_lam():
    Y = answer(drawn(4))[0].astype(np.float32)
    source = SimpleNamespace(n=len(Y), ordered=False, pieces=(), project=lambda W, index: [Y[index] @ W])
    source.windows = source.timed = source.sample_rate = source.copies = source.incomplete = None
    source.complete, source.by_subject = (lambda index: None), False
    config = {"solver": {"name": "moments", "lam": "auto"}, "model": {"objective": "main"}}
    run = SimpleNamespace(rotation=None, filters=np.eye(7), config=config, evaluation={"lam": 0.2}, attrs={})
    np.testing.assert_allclose(
        certify_run(run, source).curvature, certify_fourth(Y, 0.2).curvature, rtol=1e-6
    )
    config["solver"]["name"] = "newton"
    assert certify_run(run, source).lam is None
