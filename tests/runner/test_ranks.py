"""One run over several processes, started by the real torchrun: the result of one process, and an orderly end."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import run_command, until

from sigmapca_cli.cli.evaluate import evaluated
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import distributed_env

SMALL = ("data=planted", "data.n=4003", "data.p=16", "data.k=4", "data.group=2", "k=4", "threads=1")


def torchrun(processes: int, *command: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(
        words, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def train(*arguments: str, folder: Path, processes: int = 2) -> subprocess.Popen[str]:
    """`sigmapca train` in this many processes; one is started without torchrun."""
    if processes > 1:
        return torchrun(processes, "-m", "sigmapca_cli", "train", *arguments, folder=folder)
    command = [sys.executable, "-m", "sigmapca_cli", "train", *arguments]
    return subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def end_of(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """The exit status, and what sigmapca said on standard error."""
    output, _ = process.communicate(timeout=240)
    return process.returncode, [line for line in output.splitlines() if line.startswith("sigmapca: ")]


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Process ids by rank."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    by_rank = {}
    for pid in map(int, listed.stdout.split()):
        settings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        ranks = [int(s.removeprefix(b"RANK=")) for s in settings if s.startswith(b"RANK=")]
        by_rank.update(dict.fromkeys(ranks, pid))
    return [by_rank[rank] for rank in sorted(by_rank)]


def test_where_a_process_stands(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    slurm = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"}
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert distributed_env() is None  # a batch script with four tasks is one process
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    assert distributed_env() is None  # four runs of their own
    monkeypatch.setenv("MASTER_ADDR", "node1")
    here = distributed_env()
    assert here is not None and (here.rank, here.world, here.local) == (3, 4, 1)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert distributed_env() is None  # one task of an array
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("SLURM_STEP_ID")
    with pytest.raises(InputError, match="torchrun"):
        distributed_env()


@pytest.mark.full
def test_a_solver_on_shares_is_made_again_after_a_death_and_equals_one_process(tmp_path):
    """Death of a rank, the same command again, and the evaluation; all by the real torchrun."""
    words = ("data=planted", "data.n=50000", "data.p=16", "data.k=8", "k=8", "threads=1")
    solver = ("solver=newton", "a=3", "solver.starts=12", "--if-exists", "resume", "--run-dir", "run")
    begun = train(*words, *solver, folder=tmp_path)
    log = tmp_path / "run" / "train.log"
    until(lambda: log.exists() and "2 processes" in log.read_text(), "the start of the solver")
    os.kill(workers(begun)[1], signal.SIGKILL)
    status, said = end_of(begun)
    assert status == 1 and len(said) == 1, (status, said)
    assert "a worker process died: rank 1 " in said[0] and "--resume" in said[0]
    assert StoredRun.open(tmp_path / "run").status != "finished"
    assert end_of(train(*words, *solver, folder=tmp_path))[0] == 0
    assert end_of(train(*words, *solver[:-1], "one", folder=tmp_path, processes=1))[0] == 0
    one, run = StoredRun.open(tmp_path / "one"), StoredRun.open(tmp_path / "run")
    assert run.attrs["processes"] == 2 and run.attrs["data_hash"] == one.attrs["data_hash"]
    assert np.abs(run.filters - one.filters).max() < 1e-10
    assert np.abs(run.sigma - one.sigma).max() < 1e-10

    evaluate = ("-m", "sigmapca_cli", "evaluate", "run", "--certificate", "--json")
    output, _ = torchrun(2, *evaluate, folder=tmp_path).communicate(timeout=240)
    found = json.loads(output[output.index("{") :])["run"]
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path)
        alone = evaluated("one", None, certificate=True)
    assert found["identifiability"] == alone["identifiability"]
    assert np.abs(np.array(found["kurtosis"]) - alone["kurtosis"]).max() < 1e-5
    # Rank 0 has stored them.
    assert "identifiability/words" in StoredRun.open(tmp_path / "run").evaluation


REFUSED = [
    (("model=fastica",), "needs all rows in one process"),
    (("-m", "a=1,2"), "a sweep is not spread over 2 processes"),
    (("model=nlpca",), "use a solver, or sp.nn with DistributedDataParallel"),
    (("model=lica",), "use a solver, or sp.nn with DistributedDataParallel"),
    (("solver=newton", "k=1000"), "lower k"),
]


TWO = """
import os
started = []
for rank in "01":
    started.append(os.fork())
    if not started[-1]:
        os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}")
        break
else:
    os._exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started))
"""
"""Two processes of one command, as torchrun starts them, without its ten seconds."""


def two(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`sigmapca train` in two processes that find each other."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    return run_command(("train", *arguments), folder, {}, before=TWO.format(port=port))


def test_two_processes_solve_a_run_or_refuse_it_once(tmp_path):
    refused = two(tmp_path, *SMALL[:-2], "model=nlpca")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr
    assert "use a solver, or sp.nn with DistributedDataParallel" in refused.stderr
    assert not list(tmp_path.rglob("run.h5"))
    solved = two(tmp_path, *SMALL, "solver=newton", "a=3", "--run-dir", "run")
    assert solved.returncode == 0, solved.stderr
    run = StoredRun.open(tmp_path / "run")
    assert run.attrs["processes"] == 2 and run.status == "finished"


@pytest.mark.full
@pytest.mark.parametrize("arguments, words", REFUSED)
def test_refusals_are_one_line_said_once(tmp_path, arguments, words):
    status, said = end_of(train(*SMALL[:-2], *arguments, folder=tmp_path))
    assert status == 1 and len(said) == 1 and words in said[0], said
    assert not list(tmp_path.rglob("run.h5"))
