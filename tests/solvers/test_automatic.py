"""`a=auto` of solver=newton: the a that holds a component at the answer of solver=independence."""

import warnings

import numpy as np
import pytest
from mechanisms import every
from solver_helpers import matched
from source_kinds import KINDS, planted

import sigmapca_cli as sp
from sigmapca_cli.sklearn import SigmaPCA


@pytest.mark.parametrize("kind", every([kind for kind in KINDS if kind != "Poisson(20)"], ["t, 3 df"]))
def test_newton_finds_the_kinds_of_source_that_an_a_holds(kind):
    X, E = planted(kind, 2000, 5)
    model = SigmaPCA(5, solver="newton").fit(X)
    assert matched(model.components_.T, E) > 0.99


def test_few_rows_of_many_sources_are_no_reason_for_an_extreme_a(tmp_path):
    words = ["data.n=200", "data.sources=mixed", f"outputs={tmp_path}"]
    assert sp.train("planted", k=12, a="auto", solver="newton", overrides=words).evaluation["mcc"] > 0.98


def test_a_run_names_its_a_and_older_ones_keep_their_choice(tmp_path):
    X, E = planted("±1", 2000, 3)
    new = sp.train(X, k=5, a="auto", solver="newton", outputs=tmp_path)
    old = sp.train(X, k=5, a="auto", solver="newton", outputs=tmp_path, overrides=["solver.a_from=sign"])
    assert set(np.unique(new.evaluation["a"])) <= {5.0, 0.8, 0.4} and set(np.unique(old.evaluation["a"])) <= {
        3.0,
        0.8,
    }
    assert matched(new.filters, E) > 0.999 > matched(old.filters, E)


def test_pairs_that_no_a_holds_are_named_by_the_run_and_the_estimator(caplog, tmp_path):
    X, E = planted("Poisson(20)", 20_000, 0)
    with pytest.warns(UserWarning, match="solver=independence finds them"):
        model = SigmaPCA(5, solver="newton").fit(X)
    assert matched(model.components_.T, E) < 0.98
    sp.train(X, k=5, a="auto", solver="newton", outputs=tmp_path)
    assert "whatever a" in caplog.text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SigmaPCA(5, solver="newton").fit(planted("laplace", 20_000, 0)[0])
