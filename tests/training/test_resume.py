"""A run that is killed and continued ends with the same bits as one that was left alone."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from composing import composed
from forked import end_of, spawn, torture
from mechanisms import every
from run_data import datasets

from sigmapca_cli.composition.job import Job, job_of
from sigmapca_cli.runner import checkpoints, stochastic
from sigmapca_cli.runner.run import run
from sigmapca_cli.storage.read import StoredRun

SMALL = (
    "data=planted",
    "data.n=2000",
    "data.p=16",
    "data.k=4",
    "data.group=2",
    "k=4",
    "batch_size=50",
    "steps=240",
    "log_every=7",
    "threads=1",
    "checkpoint.every_steps=20",
    "init=orthogonal",
    "if_exists=resume",
)
# Between them: a random generator in every step, σ by EMA, by the data and trained, both optimizers, an early end,
# rows shuffled through a buffer.
KINDS = {
    "main": (),
    "nested-dropout": ("model=nlpca_nested_dropout",),
    "trainable": ("model=nlpca_trainable",),
    "data-sgd": ("sigma=data", "optimizer=sgd", "dtype=float64", "shuffle_buffer=300"),
    "auto-a": ("a=auto",),
    "a-by-sign": ("a=auto", "solver.a_from=sign"),
    "until-tol": ("stop=tol", "tol=0.3", "log_every=1"),
    "update": ("model=gha",),
    "best": ("keep=best_loss", "optimizer=sgd", "lr=0.3"),
}


def job_in(folder: Path, *overrides: str) -> Job:
    """The job that the command line would make of these overrides."""
    return job_of(composed(f"run_dir='{folder}'", *SMALL, *overrides))


def quietly(job: Job) -> None:
    """Run in a child whose output nobody needs."""
    with open(os.devnull, "w") as nowhere:
        sys.stdout = nowhere
        run(job)


def assert_same(folder: Path, reference: dict[str, bytes]) -> None:
    """Every dataset identical, bit for bit."""
    now = datasets(folder)
    assert now.keys() == reference.keys()
    assert not [name for name, value in reference.items() if value != now[name]]


def killed_after(job: Job, seconds: float) -> bool:
    """Start the job in a child and send it SIGKILL after so many seconds; False when it was quicker."""
    child = spawn(lambda: quietly(job))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = end_of(child)
    assert status in (0, -signal.SIGKILL), "the run failed by itself"
    return status != 0


@pytest.fixture(scope="module", params=every(KINDS, ["nested-dropout", "until-tol"]))
def kind(request, tmp_path_factory):
    """(name, the uninterrupted run's datasets, its seconds)."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp(request.param) / "whole"
    job = job_in(folder, *KINDS[request.param])
    began = time.monotonic()
    assert end_of(spawn(lambda: quietly(job))) == 0
    return request.param, datasets(folder), time.monotonic() - began


def test_killed_at_random_moments_and_continued(kind, tmp_path):
    """Killed twice at random, then left alone; `make torture` counts 300 kills over the kinds."""
    name, reference, seconds = kind
    assert len(reference["metrics/step"]) > 5
    rng = random.Random(name)
    kills, wanted = 0, torture(0) // len(KINDS) + 1
    index = 0
    while kills < wanted:
        folder = tmp_path / str(index)
        job = job_in(folder, *KINDS[name])
        for _ in range(2):
            kills += killed_after(job, rng.uniform(0, 0.9 * seconds))
            if (folder / "run.h5").exists():
                assert StoredRun.open(folder).status in ("interrupted", "finished")
        assert end_of(spawn(lambda job=job: quietly(job))) == 0
        assert StoredRun.open(folder).status == "finished"
        assert_same(folder, reference)
        # Owners' own may stay: a finished run that is asked for again is not locked, and so not cleaned.
        assert not [path for path in folder.glob(".*.aside") if not path.name.startswith("..owner.")]
        assert not (folder / "checkpoint.h5").exists()
        index += 1
    print(f"{name}: {kills} kills in {index} runs, all equal to the uninterrupted one")


def test_killed_between_the_last_step_and_the_evaluation(tmp_path):
    """A checkpoint at the very end holds all that the evaluation needs: no step is left to make it anew."""
    torch.set_num_threads(1)
    whole = job_in(tmp_path / "whole", "checkpoint.every_steps=240")
    assert end_of(spawn(lambda: quietly(whole))) == 0

    def dies_at_the_end(job: Job) -> None:
        stochastic.build_solution = lambda trainer, source: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        quietly(job)

    for name, steps in (("by-step", 240), ("not-at-all", 1000)):
        job = job_in(tmp_path / name, f"checkpoint.every_steps={steps}")
        assert end_of(spawn(lambda job=job: dies_at_the_end(job))) == -signal.SIGKILL
        assert (tmp_path / name / "checkpoint.h5").exists() == (steps == 240)
        assert end_of(spawn(lambda job=job: quietly(job))) == 0
        assert_same(tmp_path / name, datasets(tmp_path / "whole"))


def test_a_checkpoint_that_a_kill_left_in_a_finished_run_goes_with_the_next_command(tmp_path):
    torch.set_num_threads(1)
    folder = tmp_path / "run"
    job = job_in(folder)

    def dies_once_finished(job: Job) -> None:
        checkpoints.remove = lambda folder: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        quietly(job)

    assert end_of(spawn(lambda: dies_once_finished(job))) == -signal.SIGKILL
    assert StoredRun.open(folder).status == "finished" and (folder / "checkpoint.h5").exists()
    assert end_of(spawn(lambda: quietly(job))) == 0
    assert not (folder / "checkpoint.h5").exists()


def test_killed_before_the_first_run_file(tmp_path):
    """What is left then is no run yet: the next start takes the folder."""
    torch.set_num_threads(1)
    rng = random.Random(0)
    for index in range(max(1, torture(0) // 4)):
        folder = tmp_path / str(index)
        job = job_in(folder, "steps=2")
        for _ in range(4):
            child = spawn(lambda job=job: quietly(job))
            while not folder.exists():
                time.sleep(0.0005)
            time.sleep(rng.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            assert end_of(child) in (0, -signal.SIGKILL), sorted(path.name for path in folder.iterdir())
        assert end_of(spawn(lambda job=job: quietly(job))) == 0
        assert StoredRun.open(folder).status == "finished"
