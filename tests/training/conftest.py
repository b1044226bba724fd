"""Runs of the real command, kept small."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from sigmapca_cli.cli.places import conf_folder
from sigmapca_cli.config import register
from sigmapca_cli.job import job_of
from sigmapca_cli.runs.read import Run
from sigmapca_cli.training.run import run

Train = Callable[..., Run]


def composed(*overrides: str):
    """The configuration that the command line would compose."""
    register()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return compose("config", list(overrides))


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train in this process with these overrides; the run that was written."""

    def call(*overrides: str) -> Run:
        cfg = composed(f"outputs={tmp_path / 'outputs'}", "threads=1", *overrides)
        job = job_of(cfg)
        job.overrides = list(overrides)
        return Run.open(run(job))

    return call
