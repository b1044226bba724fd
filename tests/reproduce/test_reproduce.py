"""From runs to verdicts, on the smallest experiments, with the real command."""

import csv
import json

import numpy as np
import pytest

from sigmapca_cli.reproduce import page
from sigmapca_cli.reproduce.command import reproduce
from sigmapca_cli.reproduce.engine import perform, tasks
from sigmapca_cli.reproduce.plan import Claim, Setting
from sigmapca_cli.reproduce.registry import EXPERIMENTS
from sigmapca_cli.reproduce.results import Missing, Results
from sigmapca_cli.reproduce.rotation import fit_rotation
from sigmapca_cli.reproduce.verdicts import judge
from sigmapca_cli.runs.read import Run

POINTS = EXPERIMENTS["points-uniform"]
SHORT = ("steps=40", "threads=1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """points-uniform with 40 steps, run twice in one place: (root of outputs, folders after each)."""
    with pytest.MonkeyPatch.context() as patch:
        outputs = tmp_path_factory.mktemp("reproduce")
        patch.setenv("SIGMAPCA_OUTPUTS", str(outputs))
        counts = []
        for _ in range(2):
            reproduce([POINTS], Setting(extra=SHORT), 1, outputs / "reproduce")
            counts.append(len(list(outputs.glob("*/*/run.h5"))))
        yield outputs, counts


def test_finished_runs_are_reused(finished):
    assert finished[1] == [len(POINTS.panels)] * 2


def test_an_experiment_leaves_figure_numbers_and_verdicts(finished):
    folder = finished[0] / "reproduce" / "points-uniform"
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "figure.pdf").read_bytes()[:4] == b"%PDF"
    rows = list(csv.DictReader((folder / "numbers.csv").open()))
    assert [row["panel"] for row in rows] == [panel.key for panel in POINTS.panels]
    assert all(float(row["explained_variance"]) > 0.99 for row in rows)
    report = json.loads((folder / "verdicts.json").read_text())
    assert len(report["verdicts"]) == sum(not claim.recorded for claim in POINTS.claims)
    for verdict in report["verdicts"]:
        assert isinstance(verdict["held"], bool) and np.isfinite(verdict["value"])


def test_the_page_holds_every_claim_and_needs_no_other_file(finished):
    root = finished[0] / "reproduce"
    text = page.write_page(root).read_text()
    for claim in POINTS.claims:
        assert claim.recorded or claim.text in text
    assert "http" not in text and 'src="data:image/png;base64,' in text and "<script" not in text


def test_the_document_escapes_bars_and_counts(finished, tmp_path):
    page.write_docs(finished[0] / "reproduce", tmp_path / "docs" / "reproduction.md")
    text = (tmp_path / "docs" / "reproduction.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows and all(line.replace("\\|", "").count("|") == 6 for line in rows)
    assert "6 claims held" in text


def test_runs_that_fail_are_told_and_end_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    reproduce([POINTS], Setting(extra=(*SHORT, "k=5")), 1, tmp_path / "reproduce")
    report = json.loads((tmp_path / "reproduce" / "points-uniform" / "verdicts.json").read_text())
    assert all(v["held"] is None and "k = 5" in v["note"] for v in report["verdicts"])
    assert (tmp_path / "reproduce" / "points-uniform" / "figure.png").exists()


@pytest.mark.parametrize(
    ("relation", "value", "held"),
    [("≥", 1.0, True), (">", 1.0, False), ("≤", 1.5, False), ("<", 0.5, True), ("<", float("nan"), False)],
)
def test_judging(relation, value, held):
    nothing = Results(POINTS, Setting(), {}, {})
    verdict = judge(Claim("c", "m", relation, 1.0, lambda r: value), nothing)
    assert verdict["held"] is held


def test_a_missing_run_leaves_a_claim_open():
    nothing = Results(POINTS, Setting(), {}, {"a1": "diverged"})
    verdict = judge(Claim("c", "m", "≥", 1.0, lambda r: r.loss("a1")), nothing)
    assert verdict["held"] is None and verdict["note"] == "a1: diverged"
    with pytest.raises(Missing):
        nothing.filters("other")


def test_differences_are_claims_that_one_recipe_holds():
    def report(*marks, quick=False):
        claims = [{"claim": str(i), "held": mark, "value": 1.0} for i, mark in enumerate(marks)]
        return {"verdicts": claims, "data": "natural", "quick": quick}

    reports = {
        ("rica-beta", "default"): report(True, True, None, False),
        ("rica-beta", "paper"): report(True, False, False, True),
        # A quick run beside a full one says nothing about the recipes.
        ("tanh-scale", "default"): report(True, quick=True),
        ("tanh-scale", "paper"): report(False),
    }
    assert [ours["claim"] for _, ours, _ in page.differences(reports)] == ["1", "3"]


def test_the_recorded_loss_of_the_signals_comes_out(tmp_path, monkeypatch):
    # Two of the three variances equal: 3.30 in the authors' own runs.
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path))
    experiment, setting = EXPERIMENTS["signals-orthogonal"], Setting("paper")
    task = next(t for t in tasks(experiment, setting) if t.key == "nonlinear")
    results = Results(experiment, setting, {"nonlinear": Run.open(perform(task).folder)}, {})
    assert results.loss("nonlinear") == pytest.approx(3.30, rel=0.01)
    assert results.source_correlation("nonlinear").min() > 0.98


def test_a_rotation_between_two_sets_of_filters_is_found():
    generator = np.random.default_rng(0)
    W = np.linalg.qr(generator.standard_normal((50, 12)))[0]
    R = np.linalg.qr(generator.standard_normal((12, 12)))[0]
    np.testing.assert_allclose(fit_rotation(W @ R, W), R, atol=1e-6)
