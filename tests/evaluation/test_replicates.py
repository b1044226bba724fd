"""Runs are compared setting by setting, and what weakens their agreement is said."""

from types import SimpleNamespace

import numpy as np
import pytest

import sigmapca_cli as sp
from sigmapca_cli.evaluation.compare import by_setting, compare, weaknesses
from sigmapca_cli.system.errors import InputError


def run(a=4.0, seed=0, init="orthogonal", converged=True, solver="stochastic", half="all", part=None):
    config = {
        "a": a,
        "seed": seed,
        "init": init,
        "nonlinearity": {"a": a},
        "solver": {"name": solver},
        "data": {"half": half, "part": part},
        "model": {"kind": "trained"},
    }
    filters = np.eye(6)[:, :3]
    return SimpleNamespace(
        config=config,
        attrs={"converged": converged},
        filters=filters,
        directions=filters,
        spreads=np.ones(3),
        evaluation={},
        name="one-of-several",
        short_name="one-of-several",
        status="",
    )


def test_a_sweep_is_taken_apart_by_its_settings():
    groups = by_setting([run(a, seed) for a in (2.0, 4.0) for seed in (0, 1, 2)])
    assert {words: len(runs) for words, runs in groups.items()} == {"a=2": 3, "a=4": 3}
    assert list(by_setting([run(seed=s) for s in range(3)])) == [""]
    assert list(by_setting([run(half="even"), run(half="odd")])) == [""]
    assert list(by_setting([run(part="1/2"), run(part="2/2")])) == [""]


def test_compare_pools_no_settings():
    assert compare([run(a) for a in (2.0, 4.0, 8.0)]).stability is None
    assert compare([run(seed=s) for s in range(3)]).stability is not None


@pytest.mark.parametrize(
    "runs, words",
    [
        ([run(seed=s, init="pca") for s in range(6)], "start from the same filters"),
        ([run(seed=s, solver="newton") for s in range(6)], "no random numbers"),
        ([run(seed=s, converged=s > 1) for s in range(6)], "2 of 6 runs have not converged"),
        ([run(seed=s) for s in range(2)], "only 2 runs"),
        ([run(seed=s) for s in range(6)], "data.part=1/5"),
        ([run(part=f"{s}/6", init="file") for s in range(1, 7)], "filters of one file"),
    ],
)
def test_what_weakens_an_agreement_is_said(runs, words):
    assert any(words in note for note in weaknesses(runs))


def test_nothing_is_said_of_five_converged_runs_from_starts_of_their_own():
    assert not weaknesses([run(part=f"{s}/5") for s in range(1, 6)])
    assert not weaknesses([run(half=h, init="pca") for h in ("even", "odd")] * 3)


def test_runs_of_different_settings_alone_are_refused(monkeypatch):
    from sigmapca_cli.cli import compare as command

    monkeypatch.setattr(command, "open_runs", lambda names: [run(2.0), run(4.0)])
    with pytest.raises(InputError, match="a=2; a=4"):
        command.stability(["x"], False, "")


def test_runs_that_cannot_differ_have_no_reproducible_component():
    """Rows without axes: a solver gives one answer for all seeds, and that is no evidence on the data."""
    from sigmapca_cli.cli.compare import one_setting
    from sigmapca_cli.evaluation.stability import stability

    def setting(runs):
        return one_setting("", runs, stability([each.directions for each in runs]))

    same = setting([run(seed=s, solver="newton") for s in range(6)])
    assert same["tests"] == "nothing" and not any(row["reproducible"] for row in same["clusters"])
    seeds = setting([run(seed=s) for s in range(6)])
    assert seeds["tests"] == "the optimiser" and all(row["reproducible"] for row in seeds["clusters"])
    parts = setting([run(part=f"{s}/6", solver="newton") for s in range(1, 7)])
    assert parts["tests"] == "the data" and all(row["reproducible"] for row in parts["clusters"])
    assert not compare([run(seed=s, solver="newton") for s in range(6)]).reproducible.any()
    assert compare([run(seed=s) for s in range(6)]).plain()["tests"] == "the optimiser"


@pytest.mark.full
def test_elliptical_rows_have_no_axes_that_come_back_on_parts_of_them(tmp_path):
    """Runs on the same rows may end in one place; that is said of the optimiser, never of the data."""
    random = np.random.default_rng(0)
    X = random.standard_normal((3000, 5)) / np.sqrt(random.gamma(2.5, 1 / 2.5, size=(3000, 1)))
    words = ["init=orthogonal", f"outputs={tmp_path}"]

    def tests(settings):
        runs = [sp.train(X, k=3, overrides=[*words, *each]) for each in settings]
        return compare(runs)

    seeds = tests([f"seed={s}"] for s in range(5))
    parts = tests([f"data.part={s}/5"] for s in range(1, 6))
    assert (seeds.tests, parts.tests) == ("the optimiser", "the data")
    assert not parts.reproducible.any()
