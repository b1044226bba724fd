"""From runs to verdicts, on the smallest experiments, with the real command."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from sigmapca_cli.reproduce import command, page, summary
from sigmapca_cli.reproduce.command import reproduce
from sigmapca_cli.reproduce.engine import perform, plan, tasks, units
from sigmapca_cli.reproduce.experiment import Claim, Condition
from sigmapca_cli.reproduce.plan import Setting
from sigmapca_cli.reproduce.registry import EXPERIMENTS
from sigmapca_cli.reproduce.results import Missing, Results
from sigmapca_cli.reproduce.rotation import fit_rotation
from sigmapca_cli.reproduce.verdicts import (
    HELD,
    NOT_HELD,
    NOT_MEASURED,
    UNDECIDED,
    Spread,
    judge,
    read_reports,
    state_of,
)
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import Stopped

POINTS = EXPERIMENTS["points-uniform"]
SHORT = ("steps=40", "threads=1")
ONCE, TWICE = Setting(extra=SHORT, seeds=1), Setting(extra=SHORT, seeds=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """points-uniform with 40 steps and two seeds, run twice in one place: (root of outputs, folders after each)."""
    with pytest.MonkeyPatch.context() as patch:
        outputs = tmp_path_factory.mktemp("reproduce")
        patch.setenv("SIGMAPCA_OUTPUTS", str(outputs))
        counts = []
        for _ in range(2):
            reproduce([POINTS], TWICE, 1, outputs / "reproduce")
            counts.append(len(list(outputs.glob("*/*/run.h5"))))
        yield outputs, counts


def test_finished_runs_are_reused(finished):
    assert finished[1] == [len(POINTS.names(TWICE))] * 2 == [2 * len(POINTS.panels) - 1] * 2


def test_an_experiment_leaves_figure_numbers_and_verdicts(finished):
    folder = finished[0] / "reproduce" / "points-uniform"
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "figure.pdf").read_bytes()[:4] == b"%PDF"
    rows = list(csv.DictReader((folder / "numbers.csv").open()))
    assert [row["panel"] for row in rows] == POINTS.names(TWICE)
    assert all(float(row["explained_variance"]) > 0.99 for row in rows)
    report = json.loads((folder / "verdicts.json").read_text())
    assert len(report["verdicts"]) == sum(not claim.recorded for claim in POINTS.claims)
    for verdict in report["verdicts"]:
        assert verdict["state"] in (HELD, NOT_HELD, UNDECIDED) and np.isfinite(verdict["value"])
        assert len(verdict["values"]) == (1 if "Linear PCA" in verdict["claim"] else 2)
        assert verdict["low"] <= verdict["value"] <= verdict["high"]


def test_the_page_holds_every_claim_and_needs_no_other_file(finished):
    root = finished[0] / "reproduce"
    text = page.write_page(root).read_text()
    for claim in POINTS.claims:
        assert claim.recorded or claim.text in text
    assert "//" not in re.sub('src="data:[^"]*"', "", text).split("<script>")[0]
    assert text.count('src="data:image/png;base64,') == 1


def test_the_document_escapes_bars_and_counts(finished):
    text = summary.markdown(read_reports(finished[0] / "reproduce", ["points-uniform"]))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows and all(line.replace("\\|", "").count("|") == 6 for line in rows)
    assert "of 6 held" in text and "in 1 experiments" in text and "2 seeds)" in text


def test_runs_that_fail_are_told_and_end_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    reproduce([POINTS], Setting(extra=(*SHORT, "k=5"), seeds=1), 1, tmp_path / "reproduce")
    report = json.loads((tmp_path / "reproduce" / "points-uniform" / "verdicts.json").read_text())
    assert all(v["state"] == NOT_MEASURED and "k = 5" in v["note"] for v in report["verdicts"])
    assert (tmp_path / "reproduce" / "points-uniform" / "figure.png").exists()


def test_what_is_complete_is_judged_before_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))

    def stopped(unit):
        if unit[0].tasks[0].experiment == "points-laplace":
            raise Stopped("Ctrl-C")
        return perform(unit)

    monkeypatch.setattr(command, "perform", stopped)
    with pytest.raises(Stopped):
        reproduce([POINTS, EXPERIMENTS["points-laplace"]], ONCE, 1, tmp_path / "reproduce")
    assert (tmp_path / "reproduce" / "points-uniform" / "verdicts.json").exists()


@pytest.mark.parametrize(
    ("relation", "values", "expected"),
    [
        ("≥", [1.0], HELD),
        (">", [1.0], NOT_HELD),
        ("≤", [1.5], NOT_HELD),
        ("<", [0.5], HELD),
        ("<", [float("nan")], NOT_HELD),
        ("≥", [1.1, 1.3, 1.2], HELD),
        ("≥", [0.8, 0.7], NOT_HELD),
        ("≥", [1.1, 0.9, 1.2], UNDECIDED),
        # All above, but no further from the threshold than the seeds are from each other.
        ("≥", [1.01, 1.01, 1.2], UNDECIDED),
        ("<", [0.5, float("inf")], NOT_HELD),
    ],
)
def test_judging(relation, values, expected):
    assert state_of(Spread(tuple(values)), relation, 1.0) == expected


def test_a_claim_is_judged_by_every_seed(finished):
    """Of the two seeds one fulfils this made claim and the other does not."""
    results = opened(finished, "default")
    claim = Claim("c", "m", "> 0.5", lambda r: float(r.name("a1") == "a1@1" and r.run("a1") is not None))
    first = Claim("c", "m", "> 0.5", lambda r: float(r.run("a1") is not None))
    assert judge(first, results)["state"] == HELD
    results.asked.clear()
    verdict = judge(replace(claim, value=lambda r: float(r.run("a1").config["seed"])), results)
    assert (verdict["values"], verdict["state"]) == ([0.0, 1.0], UNDECIDED)
    unseeded = judge(Claim("c", "m", "> 0.5", lambda r: float(r.measure("linear", "mcc"))), results)
    assert len(unseeded["values"]) == 1


def opened(finished, way):
    """The results of points-uniform as they were judged."""
    rows = csv.DictReader((finished[0] / "reproduce" / "points-uniform" / "numbers.csv").open())
    runs = {row["panel"]: StoredRun.open(row["run"]) for row in rows}
    return Results(POINTS.panels, TWICE, runs, {}, 2)


def test_a_second_condition_can_refuse_what_the_first_one_holds(finished):
    """The last eigenvectors are far from Gaussian, and explain nothing: they do not separate."""
    results = opened(finished, "default")
    claim = Claim("c", "m", "> 0", lambda r: 1.0, also=Condition("explained", "≥ 0.95", lambda r: 0.0))
    assert judge(claim, results)["state"] == NOT_HELD
    assert judge(replace(claim, also=None), results)["state"] == HELD


def test_every_claim_of_separation_asks_for_explained_variance():
    words = ("separates", "Sparsity separates")
    found = [
        c for e in EXPERIMENTS.values() for c in e.claims if "negentropy over that of linear PCA" in c.measure
    ]
    assert len(found) > 20 and any(c.text.endswith(words) for c in found)
    assert all(c.also is not None and c.also.threshold == 0.95 for c in found)


def test_a_missing_run_leaves_a_claim_open():
    nothing = Results(POINTS.panels, Setting(), {}, {"a1": "diverged"})
    verdict = judge(Claim("c", "m", "≥ 1", lambda r: r.loss("a1")), nothing)
    assert verdict["state"] == NOT_MEASURED and verdict["note"] == "a1: diverged"
    with pytest.raises(Missing):
        nothing.filters("other")


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """points-uniform and signals-non-orthogonal by the Newton solver, one iteration for the second: their reports."""
    with pytest.MonkeyPatch.context() as patch:
        outputs = tmp_path_factory.mktemp("newton")
        patch.setenv("SIGMAPCA_OUTPUTS", str(outputs))
        root = outputs / "reproduce"
        reproduce([POINTS, EXPERIMENTS["rica-beta"]], Setting(data="natural", solver="newton"), 1, root)
        one = Setting(solver="newton", extra=("solver.max_iterations=1",))
        reproduce([EXPERIMENTS["signals-non-orthogonal"]], one, 1, root)
        yield root


def newton_report(root, name):
    return json.loads((root / name / "newton" / "verdicts.json").read_text())


def test_the_newton_solver_takes_the_models_it_knows(solved):
    report = newton_report(solved, "points-uniform")
    assert report["newton"]["solved"] == [p.key for p in POINTS.panels if p.key.startswith("a")]
    assert report["newton"]["unsettled"] == [] and all(v["state"] == HELD for v in report["verdicts"])
    # It answers for what it made: what linear PCA and FastICA do is no claim of its own.
    assert not [v for v in report["verdicts"] if "PCA fails" in v["claim"] or "FastICA" in v["claim"]]
    assert "--solver newton" in report["command"]
    rows = {
        r["panel"]: r for r in csv.DictReader((solved / "points-uniform" / "newton" / "numbers.csv").open())
    }
    assert "solver=newton" in rows["a1"]["command"] and "newton" not in rows["fastica"]["command"]
    # None of its models is known, so there is nothing to compare.
    assert not (solved / "rica-beta").exists()


def test_where_newton_did_not_converge_the_verdict_says_so(solved):
    report = newton_report(solved, "signals-non-orthogonal")
    assert report["newton"]["unsettled"] == ["nonlinear", "lica"]
    notes = {v["claim"]: v.get("note", "") for v in report["verdicts"]}
    assert "not converge on lica" in notes["The two-layer model recovers all three signals"]
    assert "FastICA recovers all three signals" not in notes


def test_moments_separate_both_kinds_whatever_the_a_of_the_panel(tmp_path, monkeypatch):
    """So the claims that a wrong a fails do not hold this way; the page has room for it."""
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    root = tmp_path / "reproduce"
    reproduce([POINTS, EXPERIMENTS["points-laplace"]], Setting(solver="moments"), 1, root)
    for name in ("points-uniform", "points-laplace"):
        report = json.loads((root / name / "moments" / "verdicts.json").read_text())
        assert report["moments"]["unsettled"] == [] and len(report["moments"]["solved"]) == 5
        rows = list(csv.DictReader((root / name / "moments" / "numbers.csv").open()))
        assert all(float(row["mcc"]) > 0.99 for row in rows if row["panel"].startswith("a"))
    assert "With solver=moments" in page.write_page(root).read_text()


def test_differences_are_claims_that_one_way_holds():
    def report(*marks, quick=False):
        claims = [{"claim": str(i), "held": mark, "value": 1.0} for i, mark in enumerate(marks)]
        return {"verdicts": claims, "data": "natural", "quick": quick}

    reports = {
        ("rica-beta", "default"): report(True, True, None, False),
        ("rica-beta", "paper"): report(True, False, False, True),
        # A quick run beside a full one says nothing about the recipes.
        ("tanh-scale", "default"): report(True, quick=True),
        ("tanh-scale", "paper"): report(False),
        ("points-laplace", "default"): report(True, False),
        ("points-laplace", "newton"): report(False, False),
    }
    found = [(name, claim, list(row)) for name, claim, row in summary.differences(reports)]
    assert found == [
        ("rica-beta", "1", ["default", "paper"]),
        ("rica-beta", "3", ["default", "paper"]),
        ("points-laplace", "0", ["default", "newton"]),
    ]


def test_the_overview_marks_what_is_open_and_what_is_quick():
    verdicts = [{"held": True}, {"held": False}, {"held": None}]
    cell = page.share({"verdicts": verdicts, "quick": True})
    assert cell.text == "1 of 2 held, 1 not measured (quick)" and cell.tint == 0.5
    assert page.share({"verdicts": verdicts[:2], "quick": False}).text == "1 of 2 held"
    assert page.share(None).value is None


def test_both_pages_say_where_newton_did_not_converge(solved, tmp_path):
    text = page.write_page(solved).read_text()
    for found in (text, summary.markdown(read_reports(solved, list(EXPERIMENTS)))):
        assert "signals-non-orthogonal nonlinear, signals-non-orthogonal lica" in found
        assert "It solved 7 of 11 runs" in found and "not converge on lica" in found


def test_the_recorded_loss_of_the_signals_comes_out(tmp_path, monkeypatch):
    # Two of the three variances equal: 3.30 in the authors' own runs.
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    experiment, setting = EXPERIMENTS["signals-orthogonal"], Setting("paper")
    task = next(t for t in tasks(experiment, setting) if t.key == "nonlinear")
    results = Results(
        experiment.panels, setting, {"nonlinear": StoredRun.open(perform([plan(task)])[0].folder)}, {}
    )
    assert results.loss("nonlinear") == pytest.approx(3.30, rel=0.01)
    assert results.source_correlation("nonlinear").min() > 0.98


def test_runs_that_differ_in_a_alone_are_trained_side_by_side(tmp_path, monkeypatch):
    setting = Setting(extra=("steps=200", "threads=1", "dtype=float64"), seeds=1)
    work = [plan(task) for task in tasks(POINTS, setting) if task.key in ("linear", "a1", "a2", "a4")]
    copy = replace(work[1], tasks=(replace(work[1].tasks[0], experiment="another"),))
    found = units([*work, copy])
    assert [[len(one.tasks) for one in unit] for unit in found] == [[1], [2, 1, 1]]
    filters = []
    for name, split in (("together", found), ("alone", [[one] for one in work[1:]])):
        monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path / name))
        outcomes = {o.task: o for unit in split for o in perform(unit)}
        filters.append([StoredRun.open(outcomes[one.tasks[0]].folder).filters for one in work[1:]])
    np.testing.assert_allclose(filters[0], filters[1], rtol=1e-6, atol=1e-8)


def test_one_that_fails_leaves_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    setting = Setting("paper", extra=SHORT)
    work = [plan(task) for task in tasks(POINTS, setting) if task.key in ("a1", "a2", "a4")]
    work[1] = replace(work[1], job=replace(work[1].job, cfg=replace(work[1].job.cfg, lr=1e300)))
    outcomes = perform(work)
    assert ["diverged" in o.problem for o in outcomes] == [False, True, False]
    assert [bool(o.folder) for o in outcomes] == [True, False, True]
    before = {run: run.stat().st_mtime_ns for run in tmp_path.glob("*/*/run.h5")}
    assert perform([work[0], work[2]])[1].folder == outcomes[2].folder
    assert {run: run.stat().st_mtime_ns for run in tmp_path.glob("*/*/run.h5")} == before


def test_a_rotation_between_two_sets_of_filters_is_found():
    generator = np.random.default_rng(0)
    W = np.linalg.qr(generator.standard_normal((50, 12)))[0]
    R = np.linalg.qr(generator.standard_normal((12, 12)))[0]
    np.testing.assert_allclose(fit_rotation(W @ R, W), R, atol=1e-6)
