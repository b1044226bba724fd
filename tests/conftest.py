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
    from dataclasses import replace

    from composing import composed

    from sigmapca_cli.composition.job import job_of
    from sigmapca_cli.runner.run import run
    from sigmapca_cli.storage.read import StoredRun

    def call(*overrides):
        job = job_of(composed(f"outputs={tmp_path / 'outputs'}", "threads=1", *overrides))
        return StoredRun.open(run(replace(job, overrides=list(overrides))))

    return call


QUICK = (
    "docs/test_architecture.py",
    "docs/test_docstrings.py",
    "docs/test_glossary.py",
    "docs/test_made_pages.py",
    "evaluation/test_agreement.py",
    "evaluation/test_metrics.py",
    "evaluation/test_fourth.py",
    "figures/test_filters.py",
    "figures/test_terminal.py",
    "methods/test_equations.py",
    "methods/test_pieces.py",
    "report/test_page.py",
    "storage/test_checkpoint.py",
    "storage/test_find.py",
    "storage/test_lock.py",
    "solvers/test_controller.py",
    "solvers/test_merit.py",
    "data/test_components.py",
    "data/test_config.py",
    "data/test_statistics.py",
    "system/test_processes.py",
    "training/test_batches.py",
    "training/test_fused.py",
    "training/test_optimizers.py",
)
"""Files that together touch every room and take less than a minute: `make quick`."""


FULL = (
    "cluster/test_gridengine.py",
    "cluster/test_schedulers.py::test_a_signal_during_start_up_is_75",
    "cluster/test_slurm.py",
    "docs/test_adding_a_data_source.py",
    "docs/test_adding_a_method.py",
    "docs/test_adding_a_nonlinearity.py",
    "docs/test_adding_an_experiment.py",
    "docs/test_commands.py::test_every_command_of_a_page_works",
    "docs/test_python_examples.py",
    "docs/test_site.py::test_the_site_is_searchable_and_has_every_public_name",
    "docs/test_site.py::test_the_site_loads_nothing_from_elsewhere",
    "durability/test_commands_killed.py",
    "durability/test_faults.py::test_fifty_processes_at_once",
    "durability/test_faults.py::test_of_fifty_processes_one_gets_the_named_folder",
    "durability/test_killed.py::test_killed_at_random_moments",
    "durability/test_namespaces.py::test_a_run_that_died_in_one_pod_goes_on_in_another_with_the_same_bits",
    "fuzz/test_overrides.py",
    "fuzz/test_readers.py::test_damaged_files_cost_one_line",
    "report/test_browser.py",
    "reproduce/test_command.py::test_a_schedulers_signal_is_75_and_the_same_command_goes_on",
    "reproduce/test_reproduce.py",
)
"""Random damage and kills, commands of pages, whole experiments, schedulers and browsers: `make full`.

What they have found is pinned where it always runs: `fuzz/test_hostile.py`, `fuzz/test_folders.py`, `storage/`, `cli/`.
"""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m quick` and `-m 'not full'` would leave out as a whole, unless it is named."""
    inside = collection_path.relative_to(Path(__file__).parent).as_posix()
    if collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    if any(argument.partition("::")[0].endswith(inside) for argument in config.args):
        return None
    chosen = config.option.markexpr
    return (
        True
        if (chosen == "quick" and inside not in QUICK) or (chosen == "not full" and inside in FULL)
        else None
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of these files: what is part of `make full` is no part of `make quick`."""
    tests = Path(__file__).parent
    for item in items:
        file = item.path.relative_to(tests).as_posix()
        if file in FULL or f"{file}::{getattr(item, 'originalname', '')}" in FULL:
            item.add_marker("full")
        elif file in QUICK and item.get_closest_marker("full") is None:
            item.add_marker("quick")
