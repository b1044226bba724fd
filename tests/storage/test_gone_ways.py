"""Runs computed in a way that is gone: they read, rerun on what took its place, and are not resumed.

`of_gone_ways/finished` and `interrupted` stepped with numba (`backend=numba`).
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from sigmapca_cli.settings.gone_keys import GONE, replaced, without_gone
from sigmapca_cli.storage.identity import config_hash
from sigmapca_cli.storage.read import StoredRun

FOLDER = Path(__file__).with_name("of_gone_ways")


@pytest.fixture
def older(tmp_path):
    """A copy of the folders, in an empty one."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("name", ["finished", "interrupted"])
def test_the_hash_of_what_it_stored_is_the_same(name):
    run = StoredRun.open(FOLDER / name)
    assert config_hash(run.config) == config_hash(without_gone(run.config)) == run.attrs["config_hash"]


def test_it_reruns_as_the_same_run_with_one_line_that_says_what_took_its_place(older, sigmapca):
    before = StoredRun.open(older / "finished")
    result = sigmapca("rerun", "finished", "run_dir=again")
    assert result.returncode == 1  # the last bits differ
    assert len([line for line in result.stdout.splitlines() if "backend=numba" in line]) == 1
    after = StoredRun.open(older / "again")
    assert after.attrs["config_hash"] == before.attrs["config_hash"]
    np.testing.assert_allclose(after.filters, before.filters, atol=1e-3)


def test_it_is_not_resumed_and_the_command_that_the_line_names_starts_it_again(older, sigmapca):
    before = (older / "interrupted" / "checkpoint.h5").read_bytes()
    result = sigmapca("train", "--resume", "interrupted")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert (older / "interrupted" / "checkpoint.h5").read_bytes() == before
    advice = result.stderr.strip().partition("with sigmapca ")[2]
    sigmapca(*advice.split(), "run_dir=again")
    assert StoredRun.open(older / "again").status == "finished"


def test_a_usual_value_needs_no_words():
    for key, gone in GONE.items():
        assert "." not in key  # else the configurations here are nested
        assert all(replaced({key: value}, {}) == [] for value in gone.usual)
        assert len(replaced({key: "other"}, {})) == len(replaced({}, {key: "other"})) == 1
