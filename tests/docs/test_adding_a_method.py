"""The method that docs/adding-a-method.md builds: it is built from that page, trained, and its test is run."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from sigmapca_cli.cli.places import conf_folder
from sigmapca_cli.config import register
from sigmapca_cli.job import job_of
from sigmapca_cli.methods import catalogue, objectives, registry
from sigmapca_cli.runner.lifecycle import run
from sigmapca_cli.runs.read import Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-method.md"
BLOCKS = [
    textwrap.dedent(text)
    for text in re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.S)
]
EQUATION, ROW, SETTINGS, TOLD, TEST = BLOCKS


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says; the folder of the configuration with the new file in it."""
    monkeypatch.chdir(tmp_path)
    space = vars(objectives)
    before = set(space)
    exec(EQUATION, space)
    names = set(space) - before
    monkeypatch.setitem(registry.OBJECTIVES, "main_robust", eval(ROW, vars(registry)))
    row = eval(TOLD, vars(catalogue))
    monkeypatch.setitem(catalogue.CATALOGUE, row.name, row)
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    (conf / "model" / f"{row.name}.yaml").write_text(SETTINGS, encoding="utf-8")
    yield conf
    for name in names:
        del space[name]


def test_the_page_makes_a_method_in_under_30_lines(added):
    written = [line for block in BLOCKS for line in block.splitlines() if line.strip()]
    assert len(written) < 30

    def train(*overrides: str) -> Run:
        register()
        with initialize_config_dir(str(added), version_base="1.3"):
            return Run.open(run(job_of(compose("config", [*overrides, "threads=1"]))))

    space: dict = {}
    exec(TEST, space)
    name = next(name for name in space if name.startswith("test_"))
    space[name](train)
