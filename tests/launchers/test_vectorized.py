"""Jobs trained side by side against the same jobs run alone: folders, results, failures, resuming."""

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from composing import composed
from mechanisms import every
from shell import run_command

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.data import build
from sigmapca_cli.runner.checkpoints import Saver
from sigmapca_cli.runner.grouped import train_together
from sigmapca_cli.system.signals import Guard

SMALL = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2", "steps=150", "log_every=25")
VECTORIZED = "hydra/launcher=vectorized"
STOPPED_AFTER_A_CHECKPOINT = """
import os, signal
from sigmapca_cli.runner import checkpoints
save = checkpoints.Saver.save
def stop_after(self, run, **words):
    save(self, run, **words)
    os.kill(os.getpid(), signal.SIGTERM)
checkpoints.Saver.save = stop_after
"""


def sigmapca(folder: Path, *arguments: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
    result = run_command(arguments, folder, {})
    assert status is None or result.returncode == status, result.stderr
    return result


def jobs(folder: Path) -> list[Path]:
    (sweep,) = (folder / "outputs" / "sweeps").iterdir()
    return sorted((f for f in sweep.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))


SWEEPS = {4: ("a=2,4", "seed=0,1"), 16: ("a=2,4", "lr=0.01,0.003", "seed=0,1", "sigma.momentum=0.9,0.99")}


@pytest.fixture(scope="module", params=every(SWEEPS, [4]))
def both(request, tmp_path_factory):
    """The folders of the jobs of one sweep by each launcher: values of a, rates, seeds, constants of σ."""
    sweep = ("train", "-m", *SMALL, *SWEEPS[request.param], "dtype=float64")
    together, alone = tmp_path_factory.mktemp("together"), tmp_path_factory.mktemp("alone")
    sigmapca(together, *sweep, VECTORIZED)
    sigmapca(alone, *sweep, "hydra/launcher=basic")
    assert len(jobs(together)) == len(jobs(alone)) == request.param
    return jobs(together), jobs(alone)


def test_same_results_as_single_runs(both):
    together, alone = both
    for a, b in zip(together, alone, strict=True):
        with h5py.File(a / "run.h5") as x, h5py.File(b / "run.h5") as y:
            for name in ("filters", "sigma", "encoder"):
                np.testing.assert_allclose(x[name][()], y[name][()], rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(x["metrics/loss"][()], y["metrics/loss"][()], rtol=1e-5)
            np.testing.assert_array_equal(x["metrics/step"][()], y["metrics/step"][()])


def test_run_directories_are_ordinary_ones(both):
    together, alone = both
    for a, b in zip(together, alone, strict=True):
        names = {p.name for p in a.iterdir()}
        assert names == {p.name for p in b.iterdir()}
        with h5py.File(a / "run.h5") as x, h5py.File(b / "run.h5") as y:
            assert set(x) == set(y) and set(x["evaluation"]) == set(y["evaluation"])
            assert set(x.attrs) - set(y.attrs) == {"side_by_side"} and not set(y.attrs) - set(x.attrs)
            assert x.attrs["status"] == "finished" and x.attrs["side_by_side"] == len(together) // 2
            assert x.attrs["config_hash"] == y.attrs["config_hash"]
        # each log speaks of its own run only
        assert (a / "train.log").read_text().count("rows of 16 features") == 1


@pytest.mark.full
def test_what_cannot_be_grouped_runs_alone(tmp_path):
    result = sigmapca(tmp_path, "train", "-m", *SMALL, VECTORIZED, "model=nlpca,linear_ae,pca_svd", "k=4")
    assert "3 finished" in result.stdout


@pytest.mark.parametrize("k", every([10, 16], [10]))
def test_the_default_trains_side_by_side_with_the_bits_of_single_runs(k, tmp_path):
    wide = ("data=planted", "data.n=4000", "data.p=64", "data.k=16", "data.group=4", f"k={k}", "steps=60")
    sigmapca(tmp_path, "train", "-m", *wide, "a=2,4", "lr=0.01,0.005", "threads=1")
    for job in jobs(tmp_path):
        with h5py.File(job / "run.h5") as file:
            assert file.attrs["side_by_side"] == 4
    result = sigmapca(tmp_path, "rerun", str(jobs(tmp_path)[3]))
    assert "identical" in result.stdout


@pytest.mark.full
def test_fail_fast_trains_one_after_the_other_and_stops(tmp_path):
    sweep = ("train", "-m", *SMALL, "optimizer=sgd", "lr=1e30,0.01", "a=4", "k=4", "--fail-fast")
    sigmapca(tmp_path, *sweep, status=1)
    first, *others = jobs(tmp_path)
    assert (first / "error.json").exists() and not any((other / "run.h5").exists() for other in others)


def test_a_diverging_member_leaves_the_others_alone(tmp_path):
    sweep = ("train", "-m", *SMALL, VECTORIZED, "optimizer=sgd", "lr=0.01,1e30", "a=4", "k=4")
    result = sigmapca(tmp_path, *sweep, status=1)
    assert result.stderr.count("diverged at step") == 1 and "job 1" in result.stderr
    assert "Warning" not in result.stderr
    good, bad = jobs(tmp_path)
    with h5py.File(good / "run.h5") as file:
        assert file.attrs["status"] == "finished" and np.isfinite(file["filters"][()]).all()
    with h5py.File(bad / "run.h5") as file:
        assert file.attrs["status"] == "failed"
    assert "diverged" in json.loads((bad / "error.json").read_text())["error"]


def test_a_bad_value_fails_alone(tmp_path):
    result = sigmapca(tmp_path, "train", "-m", *SMALL, VECTORIZED, "a=4,-1,2", "k=4", status=1)
    assert "2 finished, 1 failed" in result.stdout and "a=-1" in result.stderr


def test_interrupted_and_taken_up_again(tmp_path):
    sweep = (
        "train", "-m", *SMALL[:-2], VECTORIZED, "a=2,4", "k=4", "steps=400", "checkpoint.every_steps=150",
    )  # fmt: skip
    stopped = run_command(sweep, tmp_path, {}, before=STOPPED_AFTER_A_CHECKPOINT)
    assert stopped.returncode == 75, stopped.stderr
    assert all((job / "checkpoint.h5").exists() for job in jobs(tmp_path))
    result = sigmapca(tmp_path, *sweep)
    assert "2 finished" in result.stdout
    with h5py.File(jobs(tmp_path)[0] / "run.h5") as file:
        steps = file["metrics/step"][()]
        assert steps[-1] == 400 and (np.diff(steps) > 0).all()


def test_what_has_finished_is_not_made_again(tmp_path):
    """The jobs of a sweep that goes on are told by their hashes, before any rows are made."""
    sweep = ("train", "-m", *SMALL, "k=4", "steps=20", "seed=0,1")
    sigmapca(tmp_path, *sweep)
    made = [(job / "run.h5").stat().st_mtime_ns for job in jobs(tmp_path)]
    (jobs(tmp_path)[1] / "checkpoint.h5").touch()  # what a kill just before the end leaves
    again = sigmapca(tmp_path, *sweep)
    assert "already finished: 1 of 2 jobs" in again.stdout and "2 finished" in again.stdout
    assert [(job / "run.h5").stat().st_mtime_ns for job in jobs(tmp_path)] == made
    assert not (jobs(tmp_path)[1] / "checkpoint.h5").exists()


@pytest.mark.full
def test_runs_that_go_on_are_not_saved_at_every_step_once_another_has_ended(tmp_path, monkeypatch):
    """The time since the last checkpoint is that of a run that still trains; one that has ended is saved no more."""

    saved, save = [], Saver.save
    monkeypatch.setattr(
        Saver, "save", lambda self, run, **words: (saved.append(run), save(self, run, **words))
    )
    common = ("data=planted", "data.n=1500", "data.p=12", "data.k=4", "data.group=1", "k=4", "device=cpu")
    ends = ("stop=tol", "steps=3000", "init=orthogonal", "checkpoint.every=0.2", "threads=1")
    knobs = (("a=3", "lr=0.01"), ("a=5", "lr=1e-5"))
    jobs = [
        job_of(composed(*common, *ends, *knob, f"run_dir={tmp_path / str(i)}"))
        for i, knob in enumerate(knobs)
    ]
    with Guard() as guard:
        first, second = train_together(jobs, build(jobs[0].cfg.data), guard)
    assert first.run.trainer.step < 1500 and second.run.trainer.step == 3000
    assert sum(run is second.run.trainer for run in saved) < 300
