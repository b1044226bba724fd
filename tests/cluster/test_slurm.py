"""Sweeps on a SLURM cluster: as a job array, preempted, detached, and from a shell script."""

import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_data import datasets
from shell import until

from sigmapca_cli.launchers.outcome import outcomes

SMALL = (
    "data=planted",
    "data.n=4000",
    "data.p=16",
    "data.k=4",
    "data.group=2",
    "threads=1",
    "checkpoint.every_steps=500",
)
ON_SLURM = ("hydra/launcher=slurm", "hydra.launcher.mem_gb=1", "hydra.launcher.cpus_per_task=1")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "slurm" / "sweep.sh"
Environment = dict[str, str]


def start(folder: Path, environment: Environment, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sigmapca_cli", "train", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def said(environment: Environment, *command: str) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout


def queue(environment: Environment) -> list[str]:
    return said(environment, "squeue", "-h", "-r", "-o", "%i").split()


def has_begun(folder: Path) -> bool:
    """Whether it has made its first 500 steps."""
    return (folder / "checkpoint.h5").exists()


def release(environment: Environment, job: str) -> bool:
    """A requeued job waits two minutes: let it start soon. False when it no longer waits.

    Not at once: within the second of its end the node still refuses it ("already killed"), and it is lost.
    """
    if "PENDING" not in said(environment, "squeue", "-h", "-r", "-j", job, "-o", "%T"):
        return False
    time.sleep(2)
    subprocess.run(
        ["scontrol", "update", f"jobid={job}", "StartTime=now"], env=environment, capture_output=True
    )
    return True


def only_sweep(folder: Path) -> Path:
    (sweep,) = (folder / "outputs" / "sweeps").iterdir()
    return sweep


def test_six_jobs_as_an_array_one_preempted_equal_local_runs(slurm, tmp_path):
    sweep = ("-m", *SMALL, "k=4", "steps=60000,200,300,400,500,600")  # the first long enough to be preempted
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    on_cluster = start(tmp_path / "there", slurm, *sweep, *ON_SLURM)
    until(lambda: list((tmp_path / "there").glob("outputs/sweeps/*/0")), "the first job")
    there = only_sweep(tmp_path / "there")
    until(lambda: has_begun(there / "0"), "the first job's first steps")
    (job,) = [name for name in queue(slurm) if name.endswith("_0")]
    subprocess.run(["scontrol", "requeue", job], env=slurm, check=True)
    log = there / "0" / "train.log"
    until(lambda: "Stopped: SIGTERM at step" in log.read_text(), "the preempted job's checkpoint")
    until(lambda: release(slurm, job), "the preempted job in the queue")
    until(lambda: not release(slurm, job), "the preempted job's second start")
    words, _ = on_cluster.communicate(timeout=240)
    assert on_cluster.returncode == 0, words
    assert "6 jobs" in words and f"job ids: {job} " in words and "6 finished" in words
    assert "sacct" not in words and "Traceback" not in words
    assert log.read_text().count("solved in") == 1
    local = start(tmp_path / "here", slurm, *sweep)
    assert local.wait(timeout=240) == 0
    here = only_sweep(tmp_path / "here")
    for number in range(6):
        assert datasets(there / str(number)) == datasets(here / str(number)), f"job {number}"


def test_more_jobs_than_an_array_may_have_go_as_two_arrays(slurm, tmp_path):
    """Here SLURM takes no more than six: it would refuse seven as one."""
    sweep = ("-m", *SMALL, "k=4", "steps=2,3,4,5,6,7,8", *ON_SLURM)
    words, _ = start(tmp_path, slurm, *sweep).communicate(timeout=240)
    assert "7 finished" in words, words
    arrays = [line for line in words.splitlines() if line.startswith("SLURM job ")]
    assert [line.split(": ")[1].split(",")[0] for line in arrays] == ["6 jobs", "1 jobs"]
    assert [job.status for job in outcomes(only_sweep(tmp_path))] == ["finished"] * 7


def test_a_job_that_gives_way_to_a_more_urgent_one_ends_as_a_local_run(slurm, tmp_path):
    """Preemption by partition priority: SLURM itself stops our job, queues it again and starts it later."""
    sweep = ("-m", *SMALL, "k=4", "steps=60000")
    (tmp_path / "there").mkdir()
    processors = said(slurm, "sinfo", "-h", "-N", "-o", "%c").split()[0]  # all of them: one job at a time
    whole_node = (
        "hydra/launcher=slurm",
        "hydra.launcher.mem_gb=1",
        f"hydra.launcher.cpus_per_task={processors}",
    )
    on_cluster = start(tmp_path / "there", slurm, *sweep, *whole_node)
    until(lambda: list((tmp_path / "there").glob("outputs/sweeps/*/0")), "the job")
    there = only_sweep(tmp_path / "there") / "0"
    until(lambda: has_begun(there), "its first steps")
    (job,) = queue(slurm)
    urgent = (
        "sbatch",
        "--partition=urgent",
        f"--cpus-per-task={processors}",
        "--mem=1G",
        "--output=/dev/null",
    )
    subprocess.run([*urgent, "--wrap", "sleep 2"], cwd=tmp_path, env=slurm, check=True, capture_output=True)
    until(lambda: "Stopped: SIGTERM at step" in (there / "train.log").read_text(), "its checkpoint")
    until(lambda: release(slurm, job), "its place in the queue")
    until(lambda: not release(slurm, job), "its second start")
    words, _ = on_cluster.communicate(timeout=240)
    assert on_cluster.returncode == 0 and "1 finished" in words, words
    log = (there / "train.log").read_text()
    assert log.count("solved in") == 1 and log.count("Stopped") == 1
    local = start(tmp_path, slurm, *SMALL, "k=4", "steps=60000", "--run-dir", "here")
    assert local.wait(timeout=240) == 0
    assert datasets(there) == datasets(tmp_path / "here")


def test_detached_jobs_keep_the_configuration_they_were_submitted_with(slurm, tmp_path):
    conf = tmp_path / "mine" / "experiment"
    conf.mkdir(parents=True)
    (conf / "own.yaml").write_text("# @package _global_\nsteps: 30\n")
    node = said(slurm, "sinfo", "-h", "-N", "-o", "%n").split()[0]
    said(slurm, "scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    command = ("-m", *SMALL, "k=4,40", "experiment=own", "--config-dir", "mine", *ON_SLURM, "detach=true")
    submitting = start(tmp_path, slurm, *command)
    words, _ = submitting.communicate(timeout=120)
    assert submitting.returncode == 0 and "job ids: " in words and "detached" in words
    assert len(queue(slurm)) == 2, "they wait, and nobody waits for them"
    (conf / "own.yaml").write_text("# @package _global_\nsteps: 60\n")
    said(slurm, "scontrol", "update", f"nodename={node}", "state=resume")
    until(lambda: not queue(slurm), "the end of the jobs")
    done = outcomes(only_sweep(tmp_path))
    assert [job.status for job in done] == ["finished", "failed"]
    assert "lower k" in done[1].reason
    with h5py.File(only_sweep(tmp_path) / "0" / "run.h5") as file:
        assert file["evaluation/steps"][()] == 30


def test_a_detached_sweep_submitted_again_adds_nothing_that_is_done_or_waits(slurm, tmp_path):
    """Two jobs finish; one is submitted again because it failed, one waits, and neither finished one comes back."""
    node = said(slurm, "sinfo", "-h", "-N", "-o", "%n").split()[0]
    command = ("-m", *SMALL, "k=4,40", "steps=20,30", *ON_SLURM, "detach=true")
    first, _ = start(tmp_path, slurm, *command).communicate(timeout=120)
    assert "4 jobs" in first
    until(lambda: not queue(slurm), "the end of the jobs")
    sweep = only_sweep(tmp_path)
    assert [job.status for job in outcomes(sweep)] == ["finished", "finished", "failed", "failed"]
    said(slurm, "scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        second, _ = start(tmp_path, slurm, *command).communicate(timeout=120)
        assert "not submitted again: 2 finished, 0 in the queue" in second and "2 jobs" in second, second
        waiting = queue(slurm)
        assert len(waiting) == 2
        third, _ = start(tmp_path, slurm, *command).communicate(timeout=120)
        assert "not submitted again: 2 finished, 2 in the queue" in third and "job ids" not in third, third
        assert queue(slurm) == waiting
        said(slurm, "scancel", *waiting)
    finally:
        said(slurm, "scontrol", "update", f"nodename={node}", "state=resume")
    until(lambda: not queue(slurm), "the end of the cancelled jobs")


def test_the_shell_script_meets_its_time_limit_and_goes_on(slurm, tmp_path):
    arguments = " ".join((*SMALL, "k=4", "steps=60000"))
    environment = {**slurm, "SIGMAPCA_ARGUMENTS": arguments}
    submit = ("sbatch", "--parsable", "--array=0-1", "--mem=1G", "--cpus-per-task=1", str(EXAMPLE))
    number = subprocess.run(
        submit, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    folder, job = tmp_path / "outputs" / "slurm-sweep" / "a-1", f"{number}_0"
    until(lambda: has_begun(folder), "the first task's first steps")
    subprocess.run(["scancel", "--batch", "--signal=USR2", job], env=slurm, check=True)  # as the limit does
    log = folder / "train.log"
    until(lambda: "Stopped: SIGUSR2 at step" in log.read_text(), "the checkpoint")
    until(lambda: release(slurm, job) or "solved in" in log.read_text(), "the job in the queue again")
    until(lambda: not release(slurm, job) and "solved in" in log.read_text(), "the end of its second start")
    until(lambda: not queue(slurm), "the end of the jobs")
    assert log.read_text().count("solved in") == 1
    whole = start(tmp_path, slurm, "a=1", *arguments.split(), "--run-dir", "whole")
    assert whole.wait(timeout=120) == 0
    assert datasets(folder) == datasets(tmp_path / "whole")
    assert datasets(folder.parent / "a-2")


def test_one_run_over_two_tasks_ends_as_one_process(slurm, tmp_path):
    if int(said(slurm, "sinfo", "-h", "-N", "-o", "%c").split()[0]) < 2:
        pytest.skip("skipped: the node has one processor, which cannot run two tasks")
    arguments = (*(word for word in SMALL if not word.startswith("checkpoint.")), "k=4")
    environment = {**slurm, "SIGMAPCA_ARGUMENTS": " ".join(arguments)}
    size = ("--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1", "--mem=3G")
    submit = ("sbatch", "--parsable", *size, str(EXAMPLE.with_name("one_run.sh")))
    subprocess.run(submit, cwd=tmp_path, env=environment, check=True, capture_output=True)
    folder = tmp_path / "outputs" / "slurm-one-run"
    until((folder / "run.h5").exists, "the start of the job")
    until(lambda: not queue(slurm), "the end of the job")
    alone = start(tmp_path, slurm, "solver=newton", "a=4", *arguments, "--run-dir", "alone")
    assert alone.wait(timeout=120) == 0
    with h5py.File(folder / "run.h5") as two, h5py.File(tmp_path / "alone" / "run.h5") as one:
        assert two.attrs["status"] == "finished" and two.attrs["processes"] == 2
        for name in ("filters", "sigma"):
            a, b = two[name][()], one[name][()]
            assert np.abs(a - b).max() <= 1e-9 * np.abs(b).max(), name


def test_a_search_gets_its_results_from_the_nodes_and_goes_by_hashes(slurm, tmp_path):
    pytest.importorskip(
        "hydra_plugins.hydra_optuna_sweeper", reason="skipped: hydra-optuna-sweeper is not installed"
    )
    search = ("-m", *SMALL, "k=4", "steps=60", "hydra/sweeper=optuna", "objective=mcc", "a=interval(1,8)")
    trials = ("hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=2", *ON_SLURM)
    words, _ = start(tmp_path, slurm, *search, *trials).communicate(timeout=240)
    sweep = only_sweep(tmp_path)
    jobs = outcomes(sweep)
    assert [job.status for job in jobs] == ["finished"] * 2, words
    reached = {}
    for job in jobs:
        with h5py.File(sweep / job.number / "run.h5") as file:
            assert file.attrs["config_hash"].startswith(job.number)
            reached[job.number] = float(file["evaluation/mcc"][()])
    winner = max(reached, key=reached.__getitem__)
    assert f"best mcc {reached[winner]:.6g}: a=" in words and f"{sweep.name}/{winner}" in words
    again, _ = start(tmp_path, slurm, *search, *trials).communicate(timeout=240)
    assert "not submitted again: 2 finished" in again and "best mcc" in again, again
