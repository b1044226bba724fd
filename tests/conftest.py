"""Fixtures that every room's tests share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


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
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    from small_disks import mounted

    with mounted(tmp_path) as disk:
        yield disk


@pytest.fixture
def train(tmp_path):
    """Train in this process with these overrides, kept small; return the run that was written."""
    from composing import composed

    from sigmapca_cli.job import job_of
    from sigmapca_cli.runner.run import run
    from sigmapca_cli.runs.read import Run

    def call(*overrides):
        job = job_of(composed(f"outputs={tmp_path / 'outputs'}", "threads=1", *overrides))
        job.overrides = list(overrides)
        return Run.open(run(job))

    return call
