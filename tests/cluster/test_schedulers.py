"""Examples for schedulers other than SLURM: their scripts are whole; GNU parallel's runs here; signals and job ids."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from sigmapca_cli.storage.provenance import job_id
from sigmapca_cli.storage.read import StoredRun

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = "data=planted data.n=200 data.p=6 data.k=2 data.group=1 k=2 steps=20"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/*.sh")), ids=lambda path: path.parent.name)
def test_a_script_is_whole(script):
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    text = script.read_text()
    assert len(text.splitlines()) < 45
    # A script that trains goes on after a time limit; sums of a part are made again.
    assert "--if-exists resume" in text or ("sigmapca partial" in text and "srun" not in text)


def test_the_job_of_kubernetes_goes_by_exit_status():
    job = yaml.safe_load((EXAMPLES / "kubernetes" / "sweep.yaml").read_text())
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    rules = {rule["action"]: rule for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
    assert rules["Ignore"]["onExitCodes"]["values"] == [75] and rules["FailIndex"]["onExitCodes"][
        "values"
    ] == [1, 2]
    assert all(rule["onExitCodes"]["containerName"] == container["name"] for rule in rules.values())
    assert spec["template"]["spec"]["restartPolicy"] == "Never", "a pod failure policy asks for it"


@pytest.mark.full
def test_gnu_parallel_runs_its_sweep_and_repeats_nothing(tmp_path):
    if shutil.which("parallel") is None:
        pytest.skip("skipped: GNU parallel is not installed; .ci/run full installs it")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SIGMAPCA_ARGUMENTS": SMALL, "SIGMAPCA_JOB_ID": "by-hand"}
    command = ["bash", str(EXAMPLES / "parallel" / "sweep.sh")]
    first = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert first.returncode == 0, first.stderr
    folders = sorted((tmp_path / "outputs" / "parallel-sweep").iterdir())
    assert len(folders) == 6 and all(StoredRun.open(folder).status == "finished" for folder in folders)
    assert StoredRun.open(folders[0]).attrs["job_id"] == "by-hand"
    again = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 0 and again.stdout.count("already finished") == 6


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"PBS_JOBID": "7[3].server"}, "pbs:7[3].server"),
        ({"JOB_ID": "8", "SGE_TASK_ID": "2", "SGE_ROOT": "/sge"}, "gridengine:8.2"),
        ({"JOB_ID": "8", "SGE_TASK_ID": "undefined", "SGE_ROOT": "/sge"}, "gridengine:8"),
        ({"JOB_ID": "8"}, ""),
        ({"LSB_JOBID": "9", "LSB_JOBINDEX": "0"}, "lsf:9"),
        ({"SLURM_JOB_ID": "10"}, "slurm:10"),
        ({"SIGMAPCA_JOB_ID": "11.0"}, "11.0"),
        ({}, ""),
    ],
)
def test_the_id_of_a_job_is_stored_for_every_scheduler(monkeypatch, environment, name):
    for variable in (
        "SLURM_JOB_ID",
        "PBS_JOBID",
        "LSB_JOBID",
        "LSB_JOBINDEX",
        "JOB_ID",
        "SGE_TASK_ID",
        "SGE_ROOT",
    ):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert job_id() == name


def caught(pid: int) -> int:
    """The signals that a process has a handler for, as the kernel's mask."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("SigCgt")), 16)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="skipped: no /proc here")
@pytest.mark.parametrize(
    "name, moments",
    [
        ("SIGTERM", (0.0, 0.5)),
        ("SIGUSR1", (0.2,)),
        ("SIGUSR2", (0.0,)),
        ("SIGXCPU", (0.5,)),
        ("SIGHUP", (0.2,)),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["train", "steps=1000000"], ["train", "-m", "seed=0,1", "hydra/launcher=joblib"]],
)
def test_a_signal_during_start_up_is_75(tmp_path, name, moments, command):
    """At any moment after the first module: while torch, Hydra or the data are loaded."""

    def heard() -> None:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    number = getattr(signal, name)
    for seconds in moments:
        child = subprocess.Popen(
            [sys.executable, "-m", "sigmapca_cli", *command],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heard,
        )
        until = time.monotonic() + 60
        while not caught(child.pid) >> (number - 1) & 1:
            assert child.poll() is None and time.monotonic() < until
        time.sleep(seconds)
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 75, errors
        assert "Traceback" not in errors and name in errors


@pytest.mark.parametrize(
    ("count", "size", "sizes"), [(5, 2, [2, 2, 1]), (4, 4, [4]), (0, 3, []), (3, 1, [1, 1, 1])]
)
def test_an_array_that_slurm_would_refuse_goes_in_parts(count, size, sizes):
    pytest.importorskip("submitit", reason="skipped: the extra `cluster` is not installed")
    from sigmapca_cli.launchers.slurm import parts

    jobs = list(range(count))
    found = parts(jobs, size)
    assert [len(part) for part in found] == sizes and [job for part in found for job in part] == jobs
