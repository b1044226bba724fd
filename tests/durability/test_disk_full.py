"""A disk that fills up: one line, the old file whole, nothing half-written; work goes on with space."""

from pathlib import Path

import numpy as np
import pytest
from small_disks import fill

from sigmapca_cli.storage import checkpoint
from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.system.errors import RunFailed


def test_run_and_checkpoint_survive_a_full_disk(small_disk: Path) -> None:
    run = small_disk / "run"
    run.mkdir()
    writer = RunWriter(run, model="m")
    writer.log(0, {"loss": 1.0})
    writer.snapshot(filters=np.ones((40, 4)))
    checkpoint.save(run / fmt.CHECKPOINT_FILE, {"W": np.ones((40, 4))}, {"step": 0})
    ballast = fill(small_disk, leave=3 * 4096)
    before = sorted(p.name for p in run.iterdir())
    big = np.ones((400, 40))
    for attempt in (
        lambda: writer.snapshot(filters=big),
        lambda: checkpoint.save(run / fmt.CHECKPOINT_FILE, {"W": big}, {"step": 1}),
    ):
        with pytest.raises(RunFailed, match="no space left") as error:
            attempt()
        assert str(run) in str(error.value) and "\n" not in str(error.value)
    assert sorted(p.name for p in run.iterdir()) == before
    filters = StoredRun.open(run).filters
    assert filters is not None and filters.shape == (40, 4)
    assert checkpoint.load(run / fmt.CHECKPOINT_FILE)[1] == {"step": 0}
    ballast.unlink()
    writer.finish()
    assert StoredRun.open(run).filters.shape == (400, 40)  # type: ignore[union-attr]


def test_metrics_lines_are_whole_on_a_full_disk(small_disk: Path) -> None:
    run = small_disk / "run"
    run.mkdir()
    writer = RunWriter(run, model="m")
    ballast = fill(small_disk, leave=4096)
    with pytest.raises(RunFailed, match="no space left"):
        for step in range(10_000):
            writer.log(step, {"loss": float(step)})
    ballast.unlink()
    writer.flush()
    steps = StoredRun.open(run).metrics["step"]
    np.testing.assert_array_equal(steps, np.arange(len(steps)))
    assert len(steps) > 500


def test_a_lock_on_a_full_disk_says_so(small_disk: Path) -> None:
    run = small_disk / "run"
    run.mkdir()
    fill(small_disk, leave=0)
    with pytest.raises(RunFailed, match="no space left"):
        FolderLock(run).acquire()
    assert not list(run.iterdir())
