"""Comparing runs: only what differs is shown, and what cannot be compared is left out, not invented."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from solver_helpers import orthonormal

from sigmapca_cli.cli.compare import print_comparison
from sigmapca_cli.evaluation.compare import compare, differing
from sigmapca_cli.system.errors import InputError


def run(name, seed, W, **evaluation):
    config = {"seed": seed, "model": {"name": "nlpca"}, "k": W.shape[1], "outputs": name}
    return SimpleNamespace(
        attrs={}, name=name, filters=W, config=config, evaluation=evaluation, status="finished"
    )


def test_only_the_settings_that_differ_are_listed():
    a = {"seed": 0, "data": {"n": 5, "name": "planted"}, "run_dir": "a"}
    b = {"seed": 1, "data": {"n": 5, "name": "planted", "k": 3}, "run_dir": "b"}
    assert differing([a, b]) == {"seed": ["0", "1"], "data.k": ["–", "3"]}


def test_runs_with_the_same_filters_agree_and_are_stable():
    W = orthonormal(20, 4)
    runs = [
        run(f"r{i}", i, W[:, ::-1] if i else -W, explained_variance=0.9, kurtosis=np.ones(4))
        for i in range(3)
    ]
    found = compare(runs)
    np.testing.assert_allclose(found.agreement, 1)
    assert found.stability.reproducible.all() and found.chance < 0.8
    assert found.settings == {"seed": ["0", "1", "2"]}
    assert found.metrics["mean |kurtosis|"] == [1, 1, 1] and "mcc" not in found.metrics


def test_a_metric_that_one_run_lacks_is_null_in_json_and_a_dash_in_the_table(capsys):
    found = compare([run("a", 0, orthonormal(9, 2), mcc=0.5), run("b", 1, orthonormal(9, 2))])
    assert json.loads(json.dumps(found.plain(), allow_nan=False))["metrics"]["mcc"] == [0.5, None]
    print_comparison(found)
    text = capsys.readouterr().out
    assert "–" in text and "1.000" in text and "stability" not in text


def test_runs_on_data_of_other_sizes_have_no_agreement():
    found = compare([run("a", 0, orthonormal(9, 2)), run("b", 0, orthonormal(8, 2))])
    assert found.agreement is None and "agreement" not in found.plain()


def test_one_run_and_an_unfinished_one_are_refused():
    with pytest.raises(InputError, match="two or more"):
        compare([run("a", 0, orthonormal(9, 2))])
    young = SimpleNamespace(name="b", filters=None, status="running")
    with pytest.raises(InputError, match=r"b: this run has no filters yet \(status running\)"):
        compare([run("a", 0, orthonormal(9, 2)), young])
