"""Reports of one run, of a sweep, and of many runs."""

from pathlib import Path

import numpy as np
import pytest
from shell import run_command

from sigmapca_cli.report.build import sections, write_report
from sigmapca_cli.report.gallery import BUDGET
from sigmapca_cli.report.gather import Report, open_all
from sigmapca_cli.report.page import Gallery, Table
from sigmapca_cli.report.trust import certificate, verdicts
from sigmapca_cli.storage import contents
from sigmapca_cli.storage.read import StoredRun


def by_title(names: list[str]) -> dict:
    """The blocks of each section."""
    return {section.title: section.blocks for section in sections(Report(*open_all(names)))}


def test_a_sweep_is_told_by_what_differs(sweep: Path):
    parts = by_title([str(sweep)])
    assert list(parts) == [
        "What differs", "Runs", "Runs by setting", "Filters", "Curves", "Standard deviations", "Verdicts",
        "Agreement between runs", "Configuration",
    ]  # fmt: skip
    table = parts["Runs"][0]
    assert isinstance(table, Table)
    column = {name: [row[i] for row in table.cells] for i, name in enumerate(table.header)}
    assert [cell.text for cell in column["a"]] == ["10", "10", "1", "1", "2", "2", "16"]
    assert [cell.text for cell in column["status"]] == ["finished"] * 6 + ["failed"]
    assert column["MCC"][0].value == pytest.approx(1.0) and column["MCC"][6].text == "–"
    gallery = parts["Filters"][0]
    assert isinstance(gallery, Gallery)
    assert [axis.name for axis in gallery.axes] == ["a", "seed"]
    assert gallery.axes[0].values == ["1", "2", "10", "16"]


def test_one_run_has_no_comparison(sweep: Path):
    parts = by_title([str(sweep / "0")])
    assert list(parts) == ["Result", "Filters", "Curves", "Standard deviations", "Verdicts", "Configuration"]
    assert parts["Filters"][0].axes == []


def test_a_run_without_a_solution_says_why(sweep: Path):
    assert [v.text for v in verdicts(StoredRun.open(sweep / "6"))] == [
        "RunFailed: loss is <script>alert(1)</script> & nan"
    ]
    assert "Filters" not in by_title([str(sweep / "6")])


def test_runs_of_other_sizes_stand_side_by_side(tmp_path: Path, write_run):
    write_run(tmp_path / "0", 1, 0)
    write_run(tmp_path / "1", 2, 0, shape=None, k=3)
    parts = by_title([str(tmp_path)])
    assert len(parts["Filters"][0].panels) == 2
    assert "Agreement between runs" not in parts  # filters of 75 and of 25 features have no angle


def test_the_same_number_typed_otherwise_is_no_difference(tmp_path: Path, write_run):
    write_run(tmp_path / "0", 4.0, 0)
    write_run(tmp_path / "1", 4, 1)
    assert list(Report(*open_all([str(tmp_path)])).settings) == ["seed"]


@pytest.mark.full
def test_twenty_runs_of_large_filters_stay_below_5_mb(tmp_path: Path, write_run):
    for seed in range(20):
        write_run(tmp_path / str(seed), 1, seed, shape=(24, 24, 3), k=64)
    page = write_report([str(tmp_path)], tmp_path / "page.html")
    assert 0.1 * BUDGET < page.stat().st_size < 5e6


def test_more_runs_than_are_drawn_are_all_listed(tmp_path: Path, write_run, monkeypatch, caplog):
    monkeypatch.setattr("sigmapca_cli.report.gather.MOST_DRAWN", 3)
    for seed in range(5):
        write_run(tmp_path / str(seed), 1, seed)
    parts = by_title([str(tmp_path)])
    assert len(parts["Runs"][0].rows) == 5
    assert "3 of the 5 runs are shown" in parts["Runs"][1].text
    assert [panel.run for panel in parts["Filters"][0].panels] == [1, 3, 5]
    write_report([str(tmp_path)], tmp_path / "page.html")
    assert "3 of them are drawn" in caplog.text


def test_a_run_is_opened_once(sweep: Path, tmp_path: Path, monkeypatch):
    """HDF5 walks over a file at each opening: ten openings of each of 200 runs took the most of 17 s."""
    opened, whole = [], contents.surveyed
    monkeypatch.setattr(contents, "surveyed", lambda path: opened.append(path) or whole(path))
    write_report([str(sweep)], tmp_path / "page.html")
    assert sorted(opened) == sorted(sweep.glob("*/run.h5"))


def test_the_certificate_names_the_components():
    codes = np.ones((4, 4), dtype=int)
    codes[1, 2] = codes[2, 1] = 0
    evaluation = {"identifiability/verdict": codes}
    (count,) = certificate(evaluation)
    assert count.text.startswith("2 of 4") and count.text.endswith("1 of 6 pairs are not identified")
    assert count.holds is False
    stored = certificate({**evaluation, "identifiability/words": "2 of 4\ncomponents 2 and 3 look Gaussian"})
    assert [verdict.text for verdict in stored] == ["2 of 4", "components 2 and 3 look Gaussian"]
    told = {
        **evaluation,
        "identifiability/words": "depend\n2 of 4\nmore",
        "dependent_pairs": np.array([[0, 1]]),
    }
    assert [one.holds for one in certificate(told)] == [False, False, False]
    held = {
        **told,
        "identifiability/verdict": np.ones((4, 4), int),
        "identifiability/words": "depend\n4 of 4",
    }
    assert [one.holds for one in certificate(held)] == [False, None]
    assert certificate({}) == []


def test_the_command_writes_beside_the_runs(sweep: Path, tmp_path: Path):
    def call(*arguments: str):
        return run_command(("report", *arguments), tmp_path, {})

    done = call(str(sweep))
    assert done.returncode == 0 and done.stdout.startswith(str(sweep / "report.html"))
    assert "<title>7 runs of nlpca on planted, a = 1, 2, 10</title>" in (sweep / "report.html").read_text()
    assert call(str(sweep / "0"), str(sweep / "1"), "-o", "two.html").returncode == 0
    assert "<title>2 runs of nlpca on planted, a = 10</title>" in (tmp_path / "two.html").read_text()
    wrong = call("nothing-here")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


def test_linear_ica_shows_its_unmixing(tmp_path: Path, write_run):
    from sigmapca_cli.storage.write import RunWriter

    rng = np.random.default_rng(0)
    W, V = (np.linalg.qr(rng.normal(size=size))[0] for size in ((9, 3), (3, 3)))
    writer = RunWriter(tmp_path, model="lica")
    writer.finish({"filters": W, "sigma": np.ones(3), "encoder": 5 * W @ V, "rotation": V})
    assert np.allclose(StoredRun.open(tmp_path).directions, W @ V)
    assert "columns of the unmixing matrix" in by_title([str(tmp_path)])["Filters"][0].panels[0].heading


def test_a_run_that_has_just_begun_is_reported(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 10, "loss": 3.5}\n{"step": 20, "loss": 2.5}\n')
    parts = by_title([str(tmp_path)])
    assert "Curves" in parts and "Filters" not in parts
    assert ["loss", "2.5"] in [[cell.text for cell in row] for row in parts["Result"][0].cells]


def test_a_sweep_is_named_by_what_was_typed(tmp_path: Path, write_run):
    for number, (a, model) in enumerate([(1, "rica"), (2, "nlpca"), (3, "lica")]):
        write_run(tmp_path / str(number), a, 0, overrides=("k=4", f"model={model}"))
    report = Report(*open_all([str(tmp_path)]))
    assert report.swept == {"model": ["rica", "nlpca", "lica"]}
    assert "a" in report.settings  # which followed from it
    write_run(
        tmp_path / "3", 3, 1, overrides=("k=4", "model=lica")
    )  # what was typed no longer tells all apart
    assert list(Report(*open_all([str(tmp_path)])).swept) == ["a", "seed"]
