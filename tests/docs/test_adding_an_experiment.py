"""The experiment that docs/adding-an-experiment.md builds: it is planned, run, drawn and judged."""

import json
import re

import pytest
from adding_pages import battery, blocks_of, copied_conf, first_test, lines_of, unformatted

from sigmapca_cli.reproduce import command, page, registry, signals, stored
from sigmapca_cli.reproduce.plan import Setting
from sigmapca_cli.reproduce.results import Results

BLOCKS = blocks_of("adding-an-experiment.md")
ROWS, SETTINGS, TEST = BLOCKS


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGMAPCA_OUTPUTS", str(tmp_path / "outputs"))
    conf = copied_conf(tmp_path, monkeypatch)
    space = {**vars(signals), "Results": Results}
    exec(ROWS, space)
    experiment = space["EXPERIMENTS"][-1]
    (conf / "experiment" / f"{experiment.name}.yaml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.setitem(registry.EXPERIMENTS, experiment.name, experiment)
    return experiment


def test_the_page_s_experiment_is_judged_and_fails_where_its_claim_is_false(added, tmp_path, capsys):
    assert lines_of(BLOCKS) < 55
    root = tmp_path / "reproduce"

    def reproduce(name: str, *extra: str) -> list[str]:
        setting = Setting(extra=("threads=1", *extra), seeds=1)
        command.reproduce([registry.EXPERIMENTS[name]], setting, 1, root)
        report = json.loads((root / name / "verdicts.json").read_text())
        return [verdict["state"] for verdict in report["verdicts"]]

    first_test(TEST)(reproduce)
    said = capsys.readouterr().out
    assert "2 of 2 claims held" in said and "1 of 2 claims held" in said
    assert (root / added.name / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert added.title in page.write_page(root).read_text("utf-8")
    assert stored.with_new({}, root)["reports"] == {}


def test_it_passes_the_tests_of_all_experiments(added):
    tests = battery("reproduce", "test_plan.py")
    tests.test_each_experiment_has_a_file_that_names_its_figure_and_its_commands()
    tests.test_main_run_composes(added.name)
    tests.test_panel_keys_are_unique_and_relations_known()


def test_completion_and_the_list_know_it(added, capsys):
    from sigmapca_cli.cli.completion import experiments

    assert (added.name, "") in list(experiments(""))
    command.list_experiments()
    assert re.search(rf"^{added.name} .*\({3 * added.seeds + 1} runs\)", capsys.readouterr().out, re.M)


def test_what_the_page_writes_is_formatted(tmp_path):
    assert not unformatted(ROWS, tmp_path)
