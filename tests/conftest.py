"""Fixtures that every room's tests share."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def load_helper(path: Path) -> None:
    """Make a file of helpers importable by its name: tests are no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


load_helper(Path(__file__).with_name("shell.py"))


@pytest.fixture
def sigmapca(tmp_path: Path) -> Callable[..., object]:
    """Run `sigmapca ARGUMENTS` in an empty folder; return the process's status, output and errors."""
    from shell import run_command

    def call(*arguments: str, timeout: float = 120, **environment: str) -> object:
        return run_command(arguments, tmp_path, environment, timeout)

    return call


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real CIFAR-10 and MNIST files, or a skip that says so."""
    named = os.environ.get("SIGMAPCA_SHARED_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"skipped: no real data files at {folder} (set SIGMAPCA_SHARED_DATA)")
    return folder


@pytest.fixture
def train(tmp_path):
    """Train in this process with these overrides, kept small; the run that was written."""
    from hydra import compose, initialize_config_dir

    from sigmapca_cli.conf_files import conf_folder, hydra_base
    from sigmapca_cli.config import register
    from sigmapca_cli.job import job_of
    from sigmapca_cli.runner.run import run
    from sigmapca_cli.runs.read import Run

    def call(*overrides):
        register()
        with initialize_config_dir(str(conf_folder()), **hydra_base()):
            cfg = compose("config", [f"outputs={tmp_path / 'outputs'}", "threads=1", *overrides])
        job = job_of(cfg)
        job.overrides = list(overrides)
        return Run.open(run(job))

    return call
