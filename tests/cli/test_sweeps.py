"""Sweeps as a person sees them: failures told at once and in a table, resumed by the same command, one process each."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from shell import run_command

from sigmapca_cli.composition.compose import Folders
from sigmapca_cli.launchers.outcome import outcomes, table
from sigmapca_cli.launchers.snapshot import snapshot
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system import signals
from sigmapca_cli.system.errors import Stopped
from sigmapca_cli.system.processes import process_start


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`sigmapca train ARGUMENTS` in the background, standard output and errors in one stream."""
    return subprocess.Popen(
        [sys.executable, "-m", "sigmapca_cli", "train", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(path: Path) -> None:
    """Until the file holds something."""
    until = time.monotonic() + 90
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.02)


def only_sweep(folder: Path) -> Path:
    (sweep,) = (folder / "outputs" / "sweeps").iterdir()
    return sweep


def test_a_failure_is_told_at_once_and_in_the_table_and_the_others_go_on(sigmapca, tmp_path, small):
    command = ("-m", *small[:-1], "steps=40", "seed=0,1", "k=4,40", "threads=1")
    words = run_command(("train", *command), tmp_path, {}, before="import os; os.dup2(1, 2)").stdout
    sweep = only_sweep(tmp_path)
    assert [job.status for job in outcomes(sweep)] == ["finished", "failed"] * 2
    # Job 1 is announced before job 2 has even begun, and named again in the table.
    assert words.index("sigmapca: job 1: ") < words.index(f"{sweep.name}/2\n")
    assert words.count(": lower k") == 2, words
    assert "  job 3 (seed=1 k=40): " in words and "2 finished, 2 failed" in words
    assert "Traceback" not in words
    before = {path: path.stat().st_mtime_ns for path in sweep.glob("*/run.h5")}
    again = sigmapca("train", *command)
    assert again.returncode == 1
    assert "already finished: 2 of 4 jobs" in again.stdout and "2 finished, 2 failed" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in sweep.glob("*/run.h5")} == before


def test_fail_fast_stops_at_the_first_failure(sigmapca, tmp_path, small):
    result = sigmapca("train", "-m", *small, "k=40,4", "steps=20", "--fail-fast")
    assert result.returncode == 1
    assert [job.number for job in outcomes(only_sweep(tmp_path))] == ["0"]
    assert "0 finished, 1 failed" in result.stdout
    assert "1 of 2 jobs failed, 1 not started" in result.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("seed=",), "seed="),
        (("seed=[]",), "seed=[]"),
        (("k=3,4", "hydra/launcher=slurm"), "no SLURM answers here"),
    ],
)
def test_a_sweep_that_is_refused_leaves_no_folder(sigmapca, tmp_path, small, arguments, words):
    result = sigmapca("train", "-m", *small, *arguments, SLURM_CONF="/nowhere")
    assert result.returncode == 2 and words in result.stderr and len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("outputs/sweeps/*"))


@pytest.mark.full
def test_a_plus_in_front_of_a_key_changes_nothing(sigmapca, tmp_path, small):
    command = ("train", "-m", *small[:-1], "k=1,2", "steps=20", "++outputs=elsewhere")
    assert sigmapca(*command, "++threads=1").returncode == 0
    (sweep,) = (tmp_path / "elsewhere" / "sweeps").iterdir()
    assert not (tmp_path / "outputs").exists() and len(outcomes(sweep)) == 2
    again = sigmapca(*command, "++if_exists=fail", "++device=cpu")
    assert again.returncode == 2 and again.stderr.count("if_exists=fail") == 2
    assert list((tmp_path / "elsewhere" / "sweeps").iterdir()) == [sweep]


@pytest.mark.full
def test_hydras_own_way_to_ask_for_a_sweep(sigmapca, tmp_path, small):
    assert sigmapca("train", *small, "steps=20,30", "hydra.mode=MULTIRUN").returncode == 0
    assert [job.status for job in outcomes(only_sweep(tmp_path))] == ["finished"] * 2


def test_the_settings_of_a_launcher_are_shown(sigmapca):
    pytest.importorskip("submitit", reason="skipped: the extra `cluster` is not installed")
    shown = sigmapca("train", "hydra/launcher=slurm", "--cfg", "hydra")
    assert shown.returncode == 0, shown.stderr
    assert "timeout_min:" in shown.stdout and "SlurmLauncher" in shown.stdout


@pytest.mark.full
def test_a_stopped_sweep_goes_on_where_it_was(sigmapca, tmp_path, small):
    command = ("-m", *small, "steps=100,16000", "threads=1", "checkpoint.every_steps=2000")
    first = start(tmp_path, *command)
    wait_for(tmp_path / "outputs")
    while not list((tmp_path / "outputs").glob("sweeps/*/1/run.h5")):
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.02)
    sweep = only_sweep(tmp_path)
    wait_for(sweep / "1" / "checkpoint.h5")
    second = start(tmp_path, *command)  # the same sweep, while it goes on
    os.kill(first.pid, signal.SIGSTOP)
    refused, _ = second.communicate(timeout=120)
    os.kill(first.pid, signal.SIGCONT)
    assert second.returncode == 75 and f"in use by process {first.pid}" in refused
    assert len(refused.strip().splitlines()) == 1
    first.terminate()
    words, _ = first.communicate(timeout=60)
    assert first.returncode == 75, words
    assert "1 finished, 1 interrupted" in words
    begun = StoredRun.open(sweep / "1").attrs["created"]
    words, _ = start(tmp_path, *command).communicate(timeout=240)
    assert "already finished" in words and "2 finished" in words
    assert StoredRun.open(sweep / "1").attrs["created"] == begun
    whole = sigmapca("train", *small, "steps=16000", "threads=1", "--run-dir", "whole")
    assert whole.returncode == 0, whole.stderr
    assert np.array_equal(StoredRun.open(sweep / "1").filters, StoredRun.open(tmp_path / "whole").filters)
    assert np.array_equal(
        StoredRun.open(sweep / "1").metrics["loss"], StoredRun.open(tmp_path / "whole").metrics["loss"]
    )


def test_a_folder_is_not_taken_for_another_configuration(sigmapca, small):
    mine = ("train", *small, "steps=20", "--run-dir", "mine", "--if-exists", "resume")
    assert sigmapca(*mine, "a=1").returncode == 0
    assert "already finished" in sigmapca(*mine, "a=1").stdout
    other = sigmapca(*mine, "a=2")
    assert other.returncode == 2 and "holds a run of another configuration" in other.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("launcher", "options"),
    [("joblib", ("hydra.launcher.n_jobs=2",)), ("ray", ("+hydra.launcher.ray.init.num_cpus=2",))],
)
def test_other_launchers(tmp_path, small, launcher, options):
    pytest.importorskip(
        f"hydra_plugins.hydra_{launcher}_launcher",
        reason=f"skipped: hydra-{launcher}-launcher is not installed",
    )
    command = ("-m", *small[:-1], "steps=40", "seed=0,1", "threads=1", "k=4,40")
    words, _ = start(tmp_path, *command, f"hydra/launcher={launcher}", *options).communicate(timeout=240)
    assert "2 finished, 2 failed" in words and "Traceback" not in words
    assert [job.status for job in outcomes(only_sweep(tmp_path))] == ["finished", "failed"] * 2


@pytest.mark.full
def test_a_worker_of_joblib_that_gets_a_signal_in_the_middle_of_its_job(sigmapca, tmp_path, small):
    pytest.importorskip(
        "hydra_plugins.hydra_joblib_launcher", reason="hydra-joblib-launcher is not installed"
    )
    command = ("-m", *small[:-1], "seed=0,1", "threads=1", "k=4", "steps=6000", "checkpoint.every_steps=1000")
    parallel = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    job, saved = tmp_path / "none", 0
    for sent, words in ((signal.SIGKILL, "a worker was killed"), (signal.SIGTERM, "SIGTERM at step")):
        sweep = start(tmp_path, *command, *parallel)
        before = saved
        while saved == before:
            assert sweep.poll() is None, sweep.communicate()[0]
            time.sleep(0.02)
            job = next((tmp_path / "outputs").glob("sweeps/*/1"), job)
            saved = (job / "checkpoint.h5").stat().st_mtime_ns if (job / "checkpoint.h5").exists() else before
        os.kill(json.loads(max(job.glob(".owner.*")).read_text())["pid"], sent)
        said, _ = sweep.communicate(timeout=120)
        assert sweep.returncode == 75, said
        assert words in said and "the same command again goes on" in said and "Traceback" not in said
        assert StoredRun.open(job).resumable
        saved = (job / "checkpoint.h5").stat().st_mtime_ns
    again, _ = start(tmp_path, *command, *parallel).communicate(timeout=240)
    assert "2 finished" in again
    assert (
        sigmapca("train", *small, "steps=6000", "seed=1", "threads=1", "--run-dir", "whole").returncode == 0
    )
    assert np.array_equal(StoredRun.open(job).filters, StoredRun.open(tmp_path / "whole").filters)


@pytest.mark.full
def test_workers_of_joblib_save_and_end_when_their_sweep_is_killed(tmp_path, small):
    pytest.importorskip(
        "hydra_plugins.hydra_joblib_launcher", reason="hydra-joblib-launcher is not installed"
    )
    words = ("-m", *small[:-1], "seed=0,1", "threads=1", "k=4", "steps=5000000")
    sweep = start(tmp_path, *words, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    jobs: list[Path] = []
    while len(jobs) < 2:
        assert sweep.poll() is None, sweep.communicate()[0]
        time.sleep(0.1)
        jobs = [place.parent for place in tmp_path.glob("outputs/sweeps/*/*/metrics.jsonl")]
    workers = [json.loads(max(job.glob(".owner.*")).read_text())["pid"] for job in jobs]
    sweep.kill()
    sweep.communicate()
    until = time.monotonic() + 120
    while any(process_start(worker) is not None for worker in workers):
        assert time.monotonic() < until, "a worker is still there"
        time.sleep(0.1)
    assert all(StoredRun.open(job).status == "interrupted" for job in jobs)


def test_the_copy_of_conf_is_whole_and_follows_its_content(tmp_path):
    conf, sweep = tmp_path / "conf", tmp_path / "sweep"
    (conf / "model").mkdir(parents=True)
    (conf / "model" / "m.yaml").write_text("a: 1\n")
    (conf / "notes.txt").write_text("not a configuration")
    first = snapshot(conf, sweep)
    assert snapshot(conf, sweep) == first
    (conf / "model" / "m.yaml").write_text("a: 2\n")
    second = snapshot(conf, sweep)
    assert second != first
    assert (first / "model" / "m.yaml").read_text() == "a: 1\n"
    assert (second / "model" / "m.yaml").read_text() == "a: 2\n"
    assert not (first / "notes.txt").exists()
    assert sorted(path.name for path in first.parent.iterdir()) == sorted((first.name, second.name))


def test_the_table_reads_damaged_and_foreign_folders(tmp_path):
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "error.json").write_text("{")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "run.h5").write_bytes(b"not HDF5")
    (tmp_path / "2").mkdir()
    jobs = outcomes(tmp_path)
    assert [job.status for job in jobs] == ["failed", "failed"]
    assert table(jobs)[0] == "0 finished, 2 failed"


def test_a_signal_whose_error_a_library_swallowed_still_stops_the_sweep(monkeypatch, tmp_path):
    """Hydra's search for plugins catches every error of an import, and with it what a signal raised there."""
    from sigmapca_cli.cli import job, sweeps

    begun = []
    monkeypatch.setattr(signals, "_raised", [Stopped("SIGTERM before the end")])
    monkeypatch.setattr(job, "run_multirun", lambda *_, **__: begun.append(1))
    with pytest.raises(Stopped, match="SIGTERM"):
        sweeps.launch(sweeps.Sweep(tmp_path, ["seed=0,1"], Folders(), None, False, 2), print)
    assert not begun
