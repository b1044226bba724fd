"""solver=independence as a user holds it: the command's run, its sentence on independence, and its certificate."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from source_kinds import series

import sigmapca_cli as sp
from sigmapca_cli.evaluation import metrics
from sigmapca_cli.evaluation.words import dependence_said
from sigmapca_cli.runner.ending import dependence_words, order_words, verdict_words
from sigmapca_cli.solvers.independence.fit import CAUTIOUS

SIGMA = np.array([2.0, 2.0, 1.0, 1.0])


def mixed(sources: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return rows x = sEᵀ + noise of sources (n, 4) of deviations SIGMA, and E (6, 4)."""
    random = np.random.default_rng(seed)
    E = np.linalg.qr(random.standard_normal((6, 4)))[0]
    s = (sources - sources.mean(0)) / sources.std(0) * SIGMA
    return s @ E.T + 0.05 * random.standard_normal((len(s), 6)), E


def two_valued(n: int = 2000) -> np.ndarray:
    return np.sign(np.random.default_rng(0).standard_normal((n, 4)))


def skewed(n: int = 4000) -> np.ndarray:
    """Two values, kurtosis 0: every method by fourth moments takes them for Gaussian."""
    return (np.random.default_rng(0).random((n, 4)) < (3 - np.sqrt(3)) / 6).astype(float)


@pytest.mark.parametrize("sources", [two_valued, skewed])
def test_sources_of_equal_variance_come_back_and_are_called_identified(sources, tmp_path):
    X, E = mixed(sources())
    run = sp.train(X, k=4, solver="independence", outputs=tmp_path)
    assert metrics.mcc(run.filters, E) > 0.999
    assert run.evaluation["tau"] == 1 and len(run.evaluation["dependent_pairs"]) == 0
    certificate = run.certificate()
    assert certificate.identified.all() and not certificate.dependent
    assert run.attrs["converged"]


def test_gaussian_rows_of_equal_variance_are_not_identified(tmp_path):
    X, _ = mixed(np.random.default_rng(0).standard_normal((2000, 4)))
    run = sp.train(X, k=4, solver="independence", outputs=tmp_path)
    assert {(0, 1), (2, 3)} <= set(map(tuple, run.evaluation["unheld_pairs"]))  # and the run says so
    certificate = run.certificate()
    assert certificate.verdict[0, 1] == "arbitrary" and certificate.verdict[2, 3] == "arbitrary"
    assert certificate.verdict[0, 2] == "identified"  # their variances differ
    assert not certificate.identified.any()


def test_no_variance_is_the_reason_why_white_components_are_free(tmp_path):
    X, _ = mixed(np.random.default_rng(0).standard_normal((2000, 4)))
    run = sp.train(X, k=4, model="lica", solver="independence", outputs=tmp_path)
    found = run.certificate()
    assert found.white and not found.identified.any()
    assert "white" in found.sentences[1] and "equal variance" not in found.sentences[1]
    assert not sp.train(X, k=4, solver="independence", outputs=tmp_path).certificate().white


def test_what_takes_the_meaning_from_a_verdict_comes_before_it(tmp_path):
    """Components that depend on each other come before their certainty, free ones before their independence."""
    random = np.random.default_rng(0)
    size = np.exp(random.standard_normal((2000, 1)))
    X, _ = mixed(random.laplace(size=(2000, 4)) * size)
    found = sp.train(X, k=4, solver="independence", outputs=tmp_path).certificate()
    assert found.dependent and found.sentences[0] == dependence_said(found)[0]

    run = sp.train(random.standard_normal((400, 8)), k=8, solver="independence", outputs=tmp_path)
    facts = {**run.evaluation, "converged": True}
    cfg = SimpleNamespace(k=8, model=SimpleNamespace(name="nlpca"))
    assert len(np.unique(facts["unheld_pairs"])) == 8 and not dependence_words(cfg, facts)
    independent = verdict_words(cfg, {**facts, "unheld_pairs": np.zeros((0, 2))})
    assert len(independent) == 1 and independent[0] not in verdict_words(
        cfg, facts
    )  # it is no finding of noise
    assert verdict_words(cfg, {**facts, "unheld_pairs": np.array([[0, 1]])})[1] == independent[0]
    dependent = verdict_words(cfg, {**facts, "dependent_pairs": np.array([[0, 1]])})
    assert len(dependent) == 2 and dependent[0] == dependence_words(
        cfg, {**facts, "dependent_pairs": np.array([[0, 1]])}
    )


def test_an_axis_with_an_error_as_large_as_chance_is_not_called_identified(tmp_path):
    t = np.arange(4000)
    saw = 2 * (t % 1100) / 1100  # four turns, beside a trend
    slow = np.stack([3 * t / 4000, saw, np.sin(t / 20)], axis=1)
    X = slow @ np.random.default_rng(1).standard_normal((3, 6))
    X += 0.05 * np.random.default_rng(2).standard_normal(X.shape)
    run = sp.train(X, k=3, model="lica", solver="independence", outputs=tmp_path)
    certificate = run.certificate()
    assert (certificate.expected_cosine[certificate.identified] > np.cos(0.5)).all()
    assert not certificate.identified.all() and len(run.evaluation["unheld_pairs"])
    assert "standard error" in "".join(certificate.sentences)


def test_dependent_components_take_the_cautious_weight_and_are_named(tmp_path):
    random = np.random.default_rng(0)
    s = random.laplace(size=(4000, 4)) * np.exp(random.standard_normal((4000, 1)))  # one common size
    X, _ = mixed(s)
    run = sp.train(X, k=4, solver="independence", outputs=tmp_path)
    assert run.evaluation["tau"] == CAUTIOUS and len(run.evaluation["dependent_pairs"]) > 0
    certificate = run.certificate()
    assert [list(pair) for pair in certificate.dependent] == run.evaluation["dependent_pairs"].tolist()
    assert run.certificate(rows=500).dependent == certificate.dependent  # of all rows, as the run said
    assert "depend on each other" in certificate.sentences[0]


def test_linear_ica_by_independence_finds_mixing_that_is_not_orthogonal(tmp_path):
    s = skewed()
    A = np.random.default_rng(3).standard_normal((4, 4))
    run = sp.train(s @ A.T, k=4, model="lica", solver="independence", outputs=tmp_path)
    assert metrics.mcc(run.transform(s @ A.T), s - s.mean(0)) > 0.999


def test_tau_of_zero_is_linear_pca(tmp_path):
    X, _ = mixed(np.random.default_rng(0).laplace(size=(2000, 4)))
    run = sp.train(X, k=4, solver="independence", solver__tau=0, outputs=tmp_path)
    pca = sp.train(X, k=4, model="pca_svd", outputs=tmp_path)
    np.testing.assert_allclose(np.abs(np.sum(run.filters * pca.filters, axis=0)), 1, atol=1e-6)


def test_one_component_and_a_start_at_its_answer(tmp_path):
    X, E = mixed(two_valued())
    assert sp.train(X, k=1, solver="independence", outputs=tmp_path).attrs["converged"]
    run = sp.train(X, k=4, init="independence", solver="newton", a=0.5, outputs=tmp_path)
    assert metrics.mcc(run.filters, E) > 0.999


@pytest.mark.parametrize(
    "settings", [{"solver__tau": -1}, {"solver__polish": True}, {"model": "rica"}, {"nonlinearity": "sign"}]
)
def test_what_it_cannot_take_is_refused(settings, tmp_path):
    X, _ = mixed(two_valued(100))
    with pytest.raises(sp.InputError):
        sp.train(X, k=4, solver="independence", outputs=tmp_path, **settings)


def test_dependent_pairs_have_the_numbers_of_the_components(tmp_path):
    """Of linear ICA the components are ordered again at the end."""
    random = np.random.default_rng(0)
    s = random.laplace(size=(6000, 4)) * [1, 5, 2, 9]
    s[:, [0, 2]] *= np.exp(random.standard_normal((6000, 1)))  # only these two have one size
    X = s @ np.linalg.qr(random.standard_normal((4, 4)))[0].T
    run = sp.train(X, k=4, model="lica", solver="independence", outputs=tmp_path)
    matched = np.abs(np.corrcoef(run.transform(X).T, s.T)[:4, 4:]).argmax(axis=1)
    assert [{int(matched[i]) for i in pair} for pair in run.evaluation["dependent_pairs"]] == [{0, 2}]


def test_rows_in_time_are_told_apart_by_their_spectra(tmp_path):
    """Gaussian series of equal variance; white rows have no spectra in their run, and `data.ordered=false` none."""
    X, E = mixed(series("Gaussian", 2000, 0, np.array([0.95, 0.6, 0.3, -0.6]), np.ones(4)))
    run = sp.train(X, k=4, solver="independence", outputs=tmp_path)
    assert metrics.mcc(run.filters, E) > 0.998
    assert run.evaluation["rows_in_time"] and run.evaluation["bands"] == 20
    refused = sp.train(X, k=4, solver="independence", data__ordered=False, outputs=tmp_path)
    assert metrics.mcc(refused.filters, E) < 0.95 and "bands" not in refused.evaluation
    white, F = mixed(np.random.default_rng(0).laplace(size=(2000, 4)))
    plain = sp.train(white, k=4, solver="independence", outputs=tmp_path)
    assert metrics.mcc(plain.filters, F) > 0.999 and not plain.evaluation["rows_in_time"]
    asked = sp.train(white, k=4, solver="independence", data__ordered=True, outputs=tmp_path)
    assert metrics.mcc(asked.filters, F) > 0.999 and asked.evaluation["bands"] == 20


def test_sounds_are_rows_in_time_and_the_run_says_so(tmp_path):
    run = sp.train(data="signals", solver="independence", outputs=tmp_path)
    assert run.evaluation["rows_order"] == "sound"
    assert "data.ordered=false" in order_words(run.evaluation)
