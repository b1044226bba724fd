"""Run folders that version 0.1 wrote, before its training loops became one: they read, resume and rerun as they did.

`of_version_0_1/resumed.npz` holds the filters to which that version itself resumed the two interrupted runs.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from sigmapca_cli.storage.identity import config_hash
from sigmapca_cli.storage.read import StoredRun

FOLDER = Path(__file__).with_name("of_version_0_1")


@pytest.fixture
def older(tmp_path):
    """Copies of the three folders, in an empty folder."""
    for name in ("finished", "interrupted", "interrupted_autograd"):
        shutil.copytree(FOLDER / name, tmp_path / name)
    return tmp_path


def test_a_finished_run_reads(older, sigmapca):
    run = StoredRun.open(older / "finished")
    assert run.status == "finished" and run.filters.shape == (6, 3) and run.evaluation["mcc"] > 0.999
    result = sigmapca("show", "finished")
    assert result.returncode == 0 and "finished" in result.stdout


def test_a_finished_run_is_the_same_run_and_reruns_to_the_same_filters(older, sigmapca):
    """Bit for bit on the processor that made it; on others a product may end in other last bits."""
    before = StoredRun.open(older / "finished")
    result = sigmapca("rerun", "finished", "run_dir=again")
    assert (older / "again" / "run.h5").exists(), result.stderr
    after = StoredRun.open(older / "again")
    for name in ("config_hash", "data_hash"):
        assert before.attrs[name] == after.attrs[name]
    np.testing.assert_allclose(after.filters, before.filters, atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("name", ["interrupted", "interrupted_autograd"])
def test_an_interrupted_run_resumes_to_what_its_own_version_made_of_it(older, sigmapca, name):
    """Its state, its optimizer state, and what the loop remembers: the best epoch, the last two epochs' starts."""
    result = sigmapca("train", "--resume", name)
    assert result.returncode == 0, result.stderr
    run = StoredRun.open(older / name)
    assert run.status == "finished" and not (older / name / "checkpoint.h5").exists()
    expected = np.load(FOLDER / "resumed.npz")[name]
    cosines = (run.filters * expected).sum(0) / np.linalg.norm(run.filters, axis=0)
    np.testing.assert_allclose(cosines / np.linalg.norm(expected, axis=0), 1, atol=1e-4)


def test_a_checkpoint_of_another_configuration_is_refused(older, sigmapca):
    """Were the hash of a configuration to change, resuming would say so in place of taking the folder."""
    shutil.copy(older / "interrupted_autograd" / "checkpoint.h5", older / "interrupted" / "checkpoint.h5")
    result = sigmapca("train", "--resume", "interrupted")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1


def test_the_hash_of_a_configuration_without_newer_keys_is_the_same():
    run = StoredRun.open(FOLDER / "finished")
    plain = yaml.safe_load((FOLDER / "finished" / ".hydra" / "config.yaml").read_text("utf-8"))
    assert config_hash(plain) == run.attrs["config_hash"]
