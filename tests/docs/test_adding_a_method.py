"""The method that docs/adding-a-method.md builds: it is built from that page, trained, and its test is run."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from sigmapca_cli.conf_files import conf_folder, hydra_base
from sigmapca_cli.config import register
from sigmapca_cli.job import job_of
from sigmapca_cli.methods import catalogue, objectives, registry
from sigmapca_cli.reproduce import tables
from sigmapca_cli.runner.run import run
from sigmapca_cli.runs.read import Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-method.md"
BLOCKS = [
    textwrap.dedent(text)
    for text in re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.S)
]
EQUATION, REFERENCE, SETTINGS, TOLD, TEST = BLOCKS


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Put the pieces of the page where it says; the folder of the configuration with the new file in it."""
    monkeypatch.chdir(tmp_path)
    space = vars(objectives)
    before = set(space)
    exec(EQUATION, space)
    names = set(space) - before
    row = eval(TOLD, vars(catalogue))
    monkeypatch.setitem(catalogue.CATALOGUE, row.name, row)
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    (conf / "model" / f"{row.name}.yaml").write_text(SETTINGS, encoding="utf-8")
    yield conf
    for name in names:
        del space[name]
        registry.OBJECTIVES.pop(name, None)


def test_the_page_makes_a_method_in_under_40_lines(added):
    written = [line for block in BLOCKS for line in block.splitlines() if line.strip()]
    assert len(written) < 40

    def train(*overrides: str) -> Run:
        register()
        with initialize_config_dir(str(added), **hydra_base()):
            return Run.open(run(job_of(compose("config", [*overrides, "threads=1"]))))

    space: dict = {}
    exec(TEST, space)
    name = next(name for name in space if name.startswith("test_"))
    space[name](train)


def test_its_equation_passes_the_battery(added):
    """The written-out equation of the page against the function of the page; a wrong sign in either must fail."""
    methods = Path(__file__).resolve().parents[1] / "methods"
    battery = importlib.import_module("methods_references")
    equations = load(methods / "test_equations.py", "battery_of_equations")
    space = {"np": battery.np}
    exec(REFERENCE, space)
    battery.Reference.main_robust = space["main_robust"]
    batch = equations.batch.__wrapped__()
    equations.test_value_and_gradient_are_those_of_the_written_out_equation("main_robust", batch)
    battery.Reference.main_robust = lambda self, W: -space["main_robust"](self, W)
    with pytest.raises(AssertionError):
        equations.test_value_and_gradient_are_those_of_the_written_out_equation("main_robust", batch)


def load(path, name):
    """Import a file of the tests under a name, where `import` finds it afterwards."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_what_the_page_writes_is_formatted(tmp_path):
    """As ruff formats it where the page says that it goes."""
    indented = textwrap.indent(TOLD, "    ").rstrip()
    text = f"_ROWS = [\n{indented},\n]\n\n\n{EQUATION.rstrip()}\n\n\nclass Reference:\n"
    text += textwrap.indent(REFERENCE, "    ")
    (tmp_path / "page.py").write_text(text, encoding="utf-8")
    config = PAGE.parents[1] / "pyproject.toml"
    command = ["ruff", "format", "--diff", "--config", str(config), str(tmp_path / "page.py")]
    found = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_method_of_ones_own_is_no_row_of_the_paper_s_table(added):
    """`reproduce nonlinear-summary` shows the paper's twenty-four, whatever else the catalogue holds."""
    assert "nlpca_robust" in catalogue.CATALOGUE
    assert len(tables.rows_of(catalogue.NONLINEAR)) == 24 and len(tables.rows_of(catalogue.LINEAR)) == 14
