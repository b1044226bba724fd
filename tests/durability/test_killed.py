"""A writer killed at any moment leaves a run that is read, and a checkpoint that is loaded, whole."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from forked import die_at_line, end_of, spawn, torture

from sigmapca_cli.storage import checkpoint
from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.write import RunWriter, write_evaluation

SHAPE = (60, 8)


def train(folder: Path, steps: int, die_after: int = 0) -> None:
    """A run in small: at each step log, every few steps a snapshot and a checkpoint."""
    FolderLock(folder).acquire()
    writer = RunWriter(folder, model="m", config_yaml="a: 4\n")
    if die_after:
        die_at_line(die_after)
    for step in range(steps):
        writer.log(step, {"loss": float(step)})
        if step % 3 == 2:
            writer.snapshot(filters=np.full(SHAPE, float(step)))
            checkpoint.save(folder / fmt.CHECKPOINT_FILE, {"W": np.full(SHAPE, float(step))}, {"step": step})
    sys.settrace(None)
    writer.finish({"filters": np.full(SHAPE, float(steps))})


def check(folder: Path) -> int:
    """What must hold whenever the writer died; the step that can be resumed, −1 without a checkpoint."""
    run = StoredRun.open(folder)
    assert run.status in (fmt.INTERRUPTED, fmt.FINISHED)
    assert run.config == {"a": 4}
    if run.filters is not None:
        assert run.filters.shape == SHAPE and np.ptp(run.filters) == 0
    steps = run.metrics["step"]
    np.testing.assert_array_equal(steps, np.arange(len(steps)))
    if len(steps):
        np.testing.assert_array_equal(run.metrics["loss"], steps)
    if run.checkpoint is None:
        return -1
    tensors, meta = checkpoint.load(run.checkpoint)
    assert np.all(tensors["W"] == meta["step"])
    assert len(steps) > meta["step"], "the metrics up to the checkpoint are there"
    return int(meta["step"])


def resume(folder: Path, step: int) -> None:
    """The next process takes the folder over, and continues the metrics where the checkpoint stands."""
    with FolderLock(folder):
        writer = RunWriter(folder, model="m", config_yaml="a: 4\n", resume_step=step)
        for later in range(step + 1, step + 4):
            writer.log(later, {"loss": float(later)})
        writer.finish()
    run = StoredRun.open(folder)
    np.testing.assert_array_equal(run.metrics["step"], np.arange(step + 4))
    assert run.status == fmt.FINISHED
    assert not list(folder.glob("*.aside")) and not list(folder.glob(".run*")), "nothing is left aside"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(0)
    for index in range(torture(12)):
        folder = tmp_path / str(index)
        folder.mkdir()
        child = spawn(lambda folder=folder: train(folder, 1_000_000))  # type: ignore[misc]
        while not (folder / fmt.RUN_FILE).exists():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.12))
        os.kill(child, signal.SIGKILL)
        assert end_of(child) == -signal.SIGKILL
        resume(folder, check(folder))


def test_killed_at_chosen_lines(tmp_path: Path) -> None:
    """Every line of the writing code in turn, as far as the number of trials goes."""
    rng = random.Random(1)
    trials = torture(12)
    for index in range(trials):
        folder = tmp_path / str(index)
        folder.mkdir()
        line = rng.randint(1, 900)
        status = end_of(spawn(lambda folder=folder, line=line: train(folder, 12, line)))  # type: ignore[misc]
        assert status in (0, -signal.SIGKILL)
        resume(folder, check(folder))


def test_killed_while_adding_an_evaluation(tmp_path: Path) -> None:
    with RunWriter(tmp_path, model="m") as writer:
        writer.finish({"filters": np.ones(SHAPE)}, evaluation={"mcc": 0.0})

    def evaluate(line: int) -> None:
        die_at_line(line)
        write_evaluation(tmp_path, {"mcc": 1.0})

    killed = 0
    for line in range(1, 80, max(1, 80 // torture(20))):
        killed += end_of(spawn(lambda line=line: evaluate(line))) == -signal.SIGKILL  # type: ignore[misc]
        run = StoredRun.open(tmp_path)
        assert run.evaluation["mcc"] in (0.0, 1.0) and run.filters is not None
    assert killed > 3


@pytest.mark.full
def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    """Read as fast as possible while another process replaces the file as fast as possible."""
    (tmp_path / "run").mkdir()
    child = spawn(lambda: train(tmp_path / "run", 1_000_000))
    try:
        while not (tmp_path / "run" / fmt.RUN_FILE).exists():
            time.sleep(0.001)
        end = time.monotonic() + (10 if torture(0) else 0.7)
        seen = set()
        while time.monotonic() < end:
            filters = StoredRun.open(tmp_path / "run").filters
            if filters is not None:
                assert np.ptp(filters) == 0
                seen.add(float(filters[0, 0]))
        assert len(seen) > 1
    finally:
        os.kill(child, signal.SIGKILL)
        end_of(child)


@pytest.mark.skipif(sys.platform == "win32", reason="skipped: no fork here")
def test_the_kill_at_a_line_is_a_kill() -> None:
    """The instrument itself: a child told to die does not live to the end."""
    assert end_of(spawn(lambda: (die_at_line(1), StoredRun.open("/nonexistent"))[0])) == -signal.SIGKILL
