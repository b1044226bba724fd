"""The pages on adding something: their blocks of code, a copy of `conf/` to put them in, their format."""

import importlib.util
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from zlib import crc32

import pytest
from hydra import compose, initialize_config_dir

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.runner.run import run
from sigmapca_cli.settings import conf_files
from sigmapca_cli.settings.schema import register
from sigmapca_cli.storage.read import StoredRun

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS = REPOSITORY / "tests"


def blocks_of(page: str) -> list[str]:
    """Return the blocks of Python and YAML of a page of docs/, without their indentation."""
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    return [textwrap.dedent(block) for block in re.findall(r"```(?:python|yaml)\n(.*?)```", text, re.S)]


def lines_of(blocks: list[str]) -> int:
    """Return how many lines of these blocks are not empty."""
    return sum(bool(line.strip()) for block in blocks for line in block.splitlines())


def copied_conf(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Return a copy of `conf/` that the program takes for its own."""
    conf = folder / "conf"
    shutil.copytree(conf_files.conf_folder(), conf)
    patch.setattr(conf_files, "conf_folder", lambda: conf)
    return conf


def train(*overrides: str) -> StoredRun:
    """Return the finished run of `sigmapca train OVERRIDES`, made in this process."""
    register()
    with initialize_config_dir(str(conf_files.conf_folder()), **conf_files.hydra_base()):
        return StoredRun.open(run(job_of(compose("config", [*overrides, "threads=1"]))))


def first_test(block: str):
    """Return the first test function of a block."""
    space: dict = {}
    exec(block, space)
    return next(value for name, value in space.items() if name.startswith("test_"))


def load(path: Path, name: str) -> ModuleType:
    """Import a file under a name, where `import` finds it afterwards."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def battery(room: str, file: str) -> ModuleType:
    """Return a file of tests of a room, as a module of its own."""
    return load(TESTS / room / file, f"battery_of_{room}_{file.removesuffix('.py')}")


def unformatted(text: str, folder: Path) -> str:
    """Return what ruff would change in the format of a text, nothing where it is formatted."""
    (folder / "page.py").write_text(text, encoding="utf-8")
    config = str(REPOSITORY / "pyproject.toml")
    command = ["ruff", "format", "--diff", "--config", config, str(folder / "page.py")]
    found = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else found.stdout + found.stderr


def mistyped(text: str, folder: Path) -> str:
    """Return what mypy says about a module of the package, nothing where its types are right."""
    # One name a text: mypy takes a file of the same name, size and second for the one that it has checked.
    file = folder / f"page_{crc32(text.encode())}.py"
    file.write_text(text, encoding="utf-8")
    command = ["mypy", "--config-file", "pyproject.toml", str(file)]
    found = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    return "" if found.returncode == 0 else found.stdout + found.stderr
