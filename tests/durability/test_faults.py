"""What goes wrong on real machines, tried on whole runs: each costs one line, and no run."""

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from composing import composed
from forked import end_of, race, spawn
from mechanisms import every
from small_disks import fill

from sigmapca_cli.composition.job import Job, job_of
from sigmapca_cli.runner.run import run
from sigmapca_cli.storage import claim, write
from sigmapca_cli.storage.checkpoint import load
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import RunFailed, SigmapcaError

SMALL = ("data=planted", "data.n=2000", "data.p=16", "data.k=4", "data.group=2", "k=4", "threads=1")


def job_in(folder: Path, *overrides: str) -> Job:
    """A job of a named run folder that goes on where it was."""
    return job_of(composed(f"run_dir='{folder}'", "if_exists=resume", *SMALL, *overrides))


def outcome(job: Job) -> str:
    """What the run ends with: "done", or its line of error."""
    try:
        run(job)
        return "done"
    except SigmapcaError as problem:
        assert "\n" not in str(problem)
        return f"{type(problem).__name__}: {problem}"


def in_child(job: Job, meanwhile: Callable[[], None], uid: int = 0) -> str:
    """Run in another process, do `meanwhile` once it trains; how the run ended."""
    folder = Path(job.cfg.run_dir or "")
    read, write_end = os.pipe()

    def work() -> None:
        if uid:
            os.setuid(uid)
        os.write(write_end, outcome(job).encode())

    child = spawn(work)
    os.close(write_end)
    until = time.monotonic() + 60
    while not (folder / "checkpoint.h5").exists() and time.monotonic() < until:
        time.sleep(0.01)
    meanwhile()
    with os.fdopen(read) as end:
        text = end.read()
    assert end_of(child) == 0
    return text


def interrupted(folder: Path, *overrides: str) -> Job:
    """A run stopped by SIGTERM after its first checkpoint, and the job that goes on with it."""
    import signal

    job = job_in(folder, "steps=3000", "checkpoint.every_steps=100", *overrides)
    child = spawn(lambda: outcome(job) and None)
    until = time.monotonic() + 60
    while not (folder / "checkpoint.h5").exists() and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    end_of(child)
    assert StoredRun.open(folder).resumable
    return job


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One run here, so that every module is loaded: a child that has become another user may not read them."""
    torch.set_num_threads(1)
    assert (
        outcome(job_in(tmp_path_factory.mktemp("warm") / "run", "steps=2", "checkpoint.every_steps=1"))
        == "done"
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may reach: pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="sigmapca-"))
    folder.chmod(0o777)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o777)
    shutil.rmtree(folder)


LONG = ("steps=1000000", "checkpoint.every_steps=50", "log_every=1")


def test_a_disk_that_fills_up_ends_the_run_in_words_and_space_lets_it_go_on(small_disk):
    folder = small_disk / "run"
    ballast = []
    ended = in_child(job_in(folder, *LONG), lambda: ballast.append(fill(small_disk, leave=0)))
    assert ended.startswith("RunFailed") and "no space left" in ended
    _, meta = load(folder / "checkpoint.h5")
    assert StoredRun.open(folder).status in ("failed", "interrupted")
    ballast[0].unlink()
    going_on = job_in(folder, *LONG)
    going_on = replace(going_on, cfg=replace(going_on.cfg, steps=meta["step"] + 100))
    assert outcome(going_on) == "done"
    assert StoredRun.open(folder).metrics["step"][-1] == meta["step"] + 100
    assert np.array_equal(StoredRun.open(folder).metrics["step"], np.arange(1, meta["step"] + 101))


@pytest.mark.full
def test_permission_lost_in_the_middle(open_folder):
    uid = 0 if os.getuid() else 65534
    folder = open_folder / "run"
    # Another user may not be allowed to read Python's own modules: all that a run loads is to be loaded before.
    assert outcome(job_in(open_folder / "before", "steps=400", *LONG[1:])) == "done"
    ended = in_child(job_in(folder, *LONG), lambda: folder.chmod(0o555), uid)
    assert ended.startswith("RunFailed") and str(folder) in ended and "Permission denied" in ended
    tensors, _ = load(folder / "checkpoint.h5")
    assert np.isfinite(tensors["state/W"]).all()


def test_a_folder_that_cannot_be_written(open_folder):
    job = job_in(open_folder / "run", "steps=10")
    open_folder.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
    uid = 0 if os.getuid() else 65534
    read, write_end = os.pipe()

    def work() -> None:
        if uid:
            os.setuid(uid)
        os.write(write_end, outcome(job).encode())

    child = spawn(work)
    os.close(write_end)
    with os.fdopen(read) as end:
        ended = end.read()
    assert end_of(child) == 0
    assert ended.startswith("InputError") and "Permission denied" in ended and "outputs" in ended


def test_a_damaged_run_file_is_written_anew_from_the_checkpoint(tmp_path, caplog):
    job = interrupted(tmp_path / "run")
    path = tmp_path / "run" / "run.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert outcome(job) == "done"
    whole = job_in(tmp_path / "whole", "steps=3000", "checkpoint.every_steps=100")
    assert outcome(whole) == "done"
    assert np.array_equal(
        StoredRun.open(tmp_path / "run").filters, StoredRun.open(tmp_path / "whole").filters
    )


def test_a_truncated_run_file_without_a_checkpoint_is_named(tmp_path):
    job = job_in(tmp_path / "run", "steps=20")
    assert outcome(job) == "done"
    path = tmp_path / "run" / "run.h5"
    path.write_bytes(path.read_bytes()[:5000])
    ended = outcome(job)
    assert ended.startswith("InputError") and str(path) in ended


def test_a_damaged_checkpoint_is_refused(tmp_path):
    job = interrupted(tmp_path / "run")
    path = tmp_path / "run" / "checkpoint.h5"
    path.write_bytes(path.read_bytes()[:-100])
    ended = outcome(job)
    assert ended.startswith("InputError") and str(path) in ended


def test_a_run_is_not_continued_with_another_configuration(tmp_path):
    interrupted(tmp_path / "run")
    ended = outcome(job_in(tmp_path / "run", "steps=3000", "lr=0.02"))
    assert ended.startswith("InputError") and "another configuration" in ended


def test_a_data_file_that_changed_since_is_noticed(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.laplace(size=(2000, 16)))
    data = ("data=array", f"data.path='{tmp_path / 'x.npy'}'", "k=4", "threads=1", "if_exists=resume")
    job = job_of(composed(f"run_dir='{tmp_path / 'run'}'", *data, "steps=20"))
    assert outcome(job) == "done"
    assert outcome(job) == "done"  # already finished
    np.save(tmp_path / "x.npy", rng.laplace(size=(2000, 16)))
    ended = outcome(job)
    assert ended.startswith("InputError") and "other data" in ended


def test_divergence_keeps_the_last_good_checkpoint(tmp_path):
    diverging = ("model=linear_ae", "optimizer=sgd", "lr=10", "steps=500", "checkpoint.every_steps=1")
    job = job_in(tmp_path / "run", *diverging, "log_every=50")
    with pytest.raises(RunFailed, match=r"diverged at step \d+.*smaller lr") as told:
        run(job)
    step = int(str(told.value).split("step ")[1].split(":")[0])
    tensors, meta = load(tmp_path / "run" / "checkpoint.h5")
    assert meta["step"] == step - 1, "the state before the step that diverged"
    assert all(np.isfinite(value).all() for value in tensors.values())
    record = StoredRun.open(tmp_path / "run")
    assert record.status == "failed" and f"step {step}" in record.attrs["error"]
    assert f"diverged at step {step}" in (tmp_path / "run" / "train.log").read_text()


def test_a_clock_that_goes_backwards_hides_and_overwrites_nothing(tmp_path, monkeypatch):
    def at(moment: datetime) -> Path:
        class Clock(datetime):
            @classmethod
            def now(cls, tz=None):
                return moment

        monkeypatch.setattr(claim, "datetime", Clock)
        return run(job_of(composed(f"outputs='{tmp_path}'", *SMALL, "steps=20")))

    now = datetime(2030, 1, 1, 12)
    folders = [at(now), at(now - timedelta(hours=1)), at(now - timedelta(hours=1)), at(now)]
    assert len(set(folders)) == 4
    assert all(StoredRun.open(folder).status == "finished" for folder in folders)


def test_fifty_processes_at_once(tmp_path):
    """All begin the same run at the same moment: each gets a folder of its own, and all get the same result."""
    job = job_of(composed(f"outputs='{tmp_path}'", *SMALL, "steps=20"))

    def work(_: int) -> str:
        with open(os.devnull, "w") as nowhere:
            sys.stdout = nowhere
            return run(job).name

    names = race(work, 50)
    assert len(set(names)) == 50
    filters = [StoredRun.open(tmp_path / "nlpca" / name).filters for name in names]
    assert all(np.array_equal(filters[0], other) for other in filters)


def test_of_fifty_processes_one_gets_the_named_folder(tmp_path):
    job = job_in(tmp_path / "run", "steps=20", "if_exists=new")

    def work(_: int) -> str:
        with open(os.devnull, "w") as nowhere:
            sys.stdout = nowhere
            return outcome(job).split(":")[0]

    words = race(work, 50)
    assert words.count("done") == 1
    assert set(words) == {"done", "InUse", "InputError"} or set(words) == {"done", "InUse"}
    assert StoredRun.open(tmp_path / "run").status == "finished"


def test_under_torchrun_nothing_is_trained_twice(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    ended = outcome(job_in(tmp_path / "run", "steps=2"))
    assert ended.startswith("InputError") and "torchrun" in ended
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A finished run, which somebody copies over a folder in use."""
    folder = tmp_path_factory.mktemp("good") / "run"
    assert outcome(job_in(folder, "steps=20", "seed=7")) == "done"
    return folder


KINDS = {
    "steps": ("steps=40",),
    "torch": ("model=linear_ae", "steps=40"),
    "direct": ("model=pca_svd",),
    "newton": ("solver=newton",),
    "moments": ("solver=moments",),
}


@pytest.mark.parametrize("kind", every(KINDS, ["steps", "newton"]))
def test_a_folder_that_was_replaced_keeps_the_run_that_was_put_there(tmp_path, monkeypatch, good, kind):
    """`rm -rf RUN; cp -r GOOD RUN` while it trains: the run ends with one line, and GOOD stays as it is."""
    folder, finish = tmp_path / "run", write.RunWriter.finish

    def replaced_before(writer: write.RunWriter, *arguments, **named) -> None:
        if not replaced:
            replaced.append(folder)
            shutil.rmtree(folder)
            shutil.copytree(good, folder)
        finish(writer, *arguments, **named)

    replaced: list[Path] = []
    monkeypatch.setattr(write.RunWriter, "finish", replaced_before)
    assert "removed or replaced" in outcome(job_in(folder, *KINDS[kind])) and replaced
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == {
        path.name: path.read_bytes() for path in good.iterdir() if path.is_file()
    }


@pytest.mark.full
def test_a_folder_that_is_replaced_during_training_is_left_to_the_other(tmp_path, good):
    folder = tmp_path / "run"

    def replace() -> None:
        shutil.rmtree(folder)
        shutil.copytree(good, folder)

    ended = in_child(job_in(folder, "steps=400000", "checkpoint.every_steps=50"), replace)
    assert ended.startswith("InUse") and "removed or replaced" in ended
    assert (folder / "run.h5").read_bytes() == (good / "run.h5").read_bytes()
    assert not (folder / "checkpoint.h5").exists()
