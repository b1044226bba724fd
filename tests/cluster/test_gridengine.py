"""The example for Grid Engine, run for real: all its tasks, and one that meets its time limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from run_data import datasets

from sigmapca_cli.storage.read import StoredRun

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gridengine" / "sweep.sh"
SMALL = "data=planted data.n=4000 data.p=16 data.k=4 data.group=2 k=4 threads=1 checkpoint.every_steps=500"
Environment = dict[str, str]


def submit(folder: Path, environment: Environment, arguments: str, *options: str) -> str:
    """The number of the job."""
    command = ["qsub", "-terse", *options, str(EXAMPLE)]
    environment = {**environment, "SIGMAPCA_ARGUMENTS": arguments}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip().split(".")[0]


def queue(environment: Environment) -> str:
    return subprocess.run(["qstat"], env=environment, capture_output=True, text=True).stdout


def until(condition: Callable[[], object], what: Callable[[], str], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.2)


def told(folder: Path, environment: Environment) -> Callable[[], str]:
    """What the tasks have said and the queue says, for a test that waited in vain."""
    return lambda: "\n".join([queue(environment), *(path.read_text() for path in folder.glob("sigmapca.o*"))])


def test_the_sweep_ends_and_each_run_knows_its_task(gridengine, tmp_path):
    job = submit(tmp_path, gridengine, f"{SMALL} steps=20")
    until(lambda: not queue(gridengine), told(tmp_path, gridengine))
    folders = [tmp_path / "outputs" / "gridengine-sweep" / f"a-{a}" for a in (1, 2, 4, 8, 16, 32)]
    for task, folder in enumerate(folders, start=1):
        run = StoredRun.open(folder)
        assert run.status == "finished", told(tmp_path, gridengine)()
        assert run.attrs["job_id"] == f"gridengine:{job}.{task}"


def test_a_task_that_meets_its_limit_goes_on_where_it_was(gridengine, tmp_path):
    """SIGUSR1 to the task's processes, as Grid Engine sends it when s_rt has passed: 99, and the queue again."""
    arguments = f"{SMALL} steps=60000"
    job = submit(tmp_path, gridengine, arguments, "-t", "1-1")
    folder = tmp_path / "outputs" / "gridengine-sweep" / "a-1"
    until((folder / "checkpoint.h5").exists, told(tmp_path, gridengine))
    noted = Path(gridengine["SGE_ROOT"], "spool/execd/localhost/active_jobs", f"{job}.1", "job_pid")
    os.killpg(int(noted.read_text()), signal.SIGUSR1)
    log = folder / "train.log"
    until(lambda: "Stopped: SIGUSR1 at step" in log.read_text(), told(tmp_path, gridengine))
    until(lambda: not queue(gridengine), told(tmp_path, gridengine))
    assert log.read_text().count("solved in") == 1 and StoredRun.open(folder).status == "finished"
    command = [sys.executable, "-m", "sigmapca_cli", "train", "model=nlpca", "a=1", *arguments.split()]
    subprocess.run([*command, "--run-dir", "whole"], cwd=tmp_path, env=gridengine, check=True)
    assert datasets(folder) == datasets(tmp_path / "whole")
