"""`a=auto`: the a that holds a component at the answer of solver=independence."""

import warnings

import numpy as np
import pytest
from mechanisms import every
from solver_helpers import matched
from source_kinds import KINDS, planted, series

import sigmapca_cli as sp
from sigmapca_cli.sklearn import SigmaPCA

HELD = [kind for kind in KINDS if kind != "Poisson(20)"]


@pytest.mark.parametrize("kind", every(HELD, ["t, 3 df"]))
def test_newton_finds_the_kinds_of_source_that_an_a_holds(kind):
    X, E = planted(kind, 2000, 5)
    model = SigmaPCA(5, solver="newton").fit(X)
    assert matched(model.components_.T, E) > 0.99


def test_few_rows_of_many_sources_are_no_reason_for_an_extreme_a(tmp_path):
    words = ["data.n=200", "data.sources=mixed", f"outputs={tmp_path}"]
    assert sp.train("planted", k=12, a="auto", solver="newton", overrides=words).evaluation["mcc"] > 0.98


SOLVERS = ["newton", "stochastic"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_names_its_a_and_older_ones_keep_their_choice(solver, tmp_path):
    X, E = planted("±1", 2000, 3)
    new = sp.train(X, k=5, a="auto", solver=solver, outputs=tmp_path)
    old = sp.train(X, k=5, a="auto", solver=solver, outputs=tmp_path, overrides=["solver.a_from=sign"])
    for run, choices in ((new, {5.0, 0.8, 0.4}), (old, {3.0, 0.8})):
        assert set(run.evaluation["a"].round(4)) <= choices
    assert matched(new.filters, E) > 0.999 > matched(old.filters, E)


@pytest.mark.parametrize("kind", every(HELD, ["exponential"]))
def test_training_by_steps_ends_at_the_sources_too(kind, tmp_path):
    X, E = planted(kind, 5000, 5)
    run = sp.train(X, k=5, a="auto", outputs=tmp_path)
    assert run.evaluation["converged"] and matched(run.filters, E) > 0.99


def test_a_start_at_random_reaches_sources_of_one_kind(tmp_path):
    X, E = planted("±1", 2000, 3)
    assert matched(sp.train(X, k=5, a="auto", init="orthogonal", outputs=tmp_path).filters, E) > 0.99


@pytest.mark.parametrize("solver", SOLVERS)
def test_pairs_that_no_a_holds_are_named_by_the_run(solver, caplog, tmp_path):
    X, _ = planted("Poisson(20)", 20_000, 0)
    sp.train(X, k=5, a="auto", solver=solver, outputs=tmp_path)
    assert "whatever a" in caplog.text
    caplog.clear()
    sp.train(planted("laplace", 20_000, 0)[0], k=5, a="auto", solver=solver, outputs=tmp_path)
    assert "whatever a" not in caplog.text


def test_pairs_that_no_a_holds_are_named_by_the_estimator():
    X, E = planted("Poisson(20)", 20_000, 0)
    with pytest.warns(UserWarning, match="solver=independence finds them"):
        model = SigmaPCA(5, solver="newton").fit(X)
    assert matched(model.components_.T, E) < 0.98
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SigmaPCA(5, solver="newton").fit(planted("laplace", 20_000, 0)[0])


def test_runs_of_a_sweep_on_the_same_rows_share_one_answer(monkeypatch, tmp_path):
    from sigmapca_cli.solvers.main_loss import automatic

    asked, find = [], automatic.start_and_a
    monkeypatch.setattr(
        automatic, "start_and_a", lambda *given, **more: asked.append(1) or find(*given, **more)
    )
    for seed, n in ((1, 300), (2, 300), (3, 301)):
        words = [f"data.n={n}", "steps=20", f"outputs={tmp_path}"]
        sp.train("planted", k=3, a="auto", seed=seed, overrides=words)
    assert len(asked) == 2  # one for each table


def test_an_answer_for_rows_in_time_is_none_for_rows_without_an_order(tmp_path):
    """The hash of the data is the same: the second run began at the answer of the first."""
    X = (
        series("laplace", 2000, 0, np.full(4, 0.9), np.ones(4))
        @ np.linalg.qr(np.vander(np.arange(1.0, 5)))[0]
    )
    started = [
        sp.train(
            X, k=4, init="independence", steps=1, lr=1e-6, outputs=tmp_path, data__ordered=ordered
        ).filters
        for ordered in (True, False)
    ]
    assert np.abs(started[0] - started[1]).max() > 1e-3
