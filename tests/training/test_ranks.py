"""One run over several processes, started by the real torchrun: the result of one process, and an orderly end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from sigmapca_cli.cli.evaluate import evaluated
from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.catalogue import CATALOGUE
from sigmapca_cli.processes import distributed_env
from sigmapca_cli.runs.read import Run
from sigmapca_cli.training.sharded import shard_of

# 4003 rows in batches of 100: the last one has three, and is shared by two.
SMALL = ("data=planted", "data.n=4003", "data.p=16", "data.k=4", "data.group=2", "k=4", "threads=1")
BATCH = ("batch_size=100", "dtype=float64")
SOLVED_AT_ONCE = ("pca_svd", "fastica", "picard", "ppca", "factor_analysis")
VARIANTS = (
    "nlpca model.centring=noncentred",
    "nlpca model.centring=noncentred_mean",
    "nlpca constraint=weight_norm",
    "nlpca sigma=batch",
    "lica a=auto",
)


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


def until(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Process ids by rank."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    by_rank = {}
    for pid in map(int, listed.stdout.split()):
        settings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        ranks = [int(s.removeprefix(b"RANK=")) for s in settings if s.startswith(b"RANK=")]
        by_rank.update(dict.fromkeys(ranks, pid))
    return [by_rank[rank] for rank in sorted(by_rank)]


def same(one: Path, other: Path, tolerance: float = 1e-5) -> None:
    """Filters, σ, losses and the evaluation of two runs, relative to the size of each."""
    with h5py.File(one / "run.h5") as a, h5py.File(other / "run.h5") as b:
        names = [
            "filters",
            "sigma",
            "encoder",
            "metrics/step",
            "metrics/loss",
            "evaluation/explained_variance",
        ]
        for name in names:
            x, y = np.asarray(a[name][()], float), np.asarray(b[name][()], float)
            assert np.abs(x - y).max() <= tolerance * np.abs(y).max(), name


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The folder of the run that one process makes."""
    folder = tmp_path_factory.mktemp("alone")
    assert end_of(train(*SMALL, *BATCH, "steps=800", "--run-dir", "run", folder=folder, processes=1))[0] == 0
    return folder / "run"


def test_parts_are_disjoint_and_whole():
    for world in (1, 2, 3, 8):
        for whole in (1, 2, 7, 8, 100):
            parts = [shard_of(whole, rank, world) for rank in range(world)]
            seen = [row for p in parts if p.weight for row in range(p.first, p.first + p.rows)]
            assert sorted(seen) == list(range(whole))
            assert sum(p.weight for p in parts) == pytest.approx(1)
            assert all(p.rows >= 1 for p in parts)


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


def test_shares_have_the_gradient_and_the_state_of_the_whole_batch(tmp_path):
    """Every trained method over three processes, of which one has no row of the last batch."""
    methods = [*(name for name in CATALOGUE if name not in SOLVED_AT_ONCE), *VARIANTS]
    script = Path(__file__).with_name("shared_gradients.py")
    output, _ = torchrun(3, str(script), *methods, folder=tmp_path).communicate(timeout=300)
    found = dict(line.split("\t")[1:] for line in output.splitlines() if line.startswith("compared\t"))
    assert set(found) == set(methods), output[-2000:]
    assert max(float(difference) for difference in found.values()) < 1e-12


def test_two_processes_equal_one(alone, tmp_path):
    status, words = end_of(train(*SMALL, *BATCH, "steps=800", "--run-dir", "run", folder=tmp_path))
    assert status == 0 and not [w for w in words if "warning" not in w]
    same(tmp_path / "run", alone)
    assert Run.open(tmp_path / "run").attrs["processes"] == 2
    again = end_of(
        train(*SMALL, *BATCH, "steps=800", "--run-dir", "run", "--if-exists", "resume", folder=tmp_path)
    )
    assert again == (0, [])


def test_a_method_without_a_fused_step_equals_one_process(tmp_path):
    for processes in (1, 2):
        run = ("model=lica", "steps=200", "--run-dir", str(processes))
        assert end_of(train(*SMALL, *BATCH, *run, folder=tmp_path, processes=processes))[0] == 0
    same(tmp_path / "2", tmp_path / "1", tolerance=1e-9)


def test_stop_at_tol_is_decided_by_the_first(tmp_path):
    asked = (*SMALL, "batch_size=400", "stop=tol", "epochs=200", "tol=0.05")
    for processes in (1, 2):
        run = ("--run-dir", str(processes))
        assert end_of(train(*asked, *run, folder=tmp_path, processes=processes))[0] == 0
    steps = [int(Run.open(tmp_path / name).evaluation["steps"]) for name in ("1", "2")]
    assert steps[0] == steps[1] < 200 * 11


@pytest.mark.parametrize("processes", [1, 2])
def test_a_signal_to_any_process_saves_and_the_run_goes_on(alone, tmp_path, processes):
    begun = train(
        *SMALL, *BATCH, "steps=800", "checkpoint.every_steps=20", "--run-dir", "run", folder=tmp_path
    )
    until((tmp_path / "run" / "checkpoint.h5").exists, "the first steps")
    os.kill(workers(begun)[1], signal.SIGTERM)
    status, words = end_of(begun)
    assert status == 1  # torchrun's own; 75 is that of its processes
    assert len(words) == 1 and "SIGTERM at step" in words[0] and "saved" in words[0], words
    assert Run.open(tmp_path / "run").status == "interrupted"
    status, _ = end_of(train("--resume", "run", folder=tmp_path, processes=processes))
    assert status == 0
    same(tmp_path / "run", alone)


def test_a_killed_worker_ends_the_job_in_words_and_leaves_a_checkpoint(alone, tmp_path):
    for rank in (1, 0):
        run = f"run{rank}"
        begun = train(
            *SMALL, *BATCH, "steps=800", "checkpoint.every_steps=20", "--run-dir", run, folder=tmp_path
        )
        until((tmp_path / run / "checkpoint.h5").exists, "the first checkpoint")
        os.kill(workers(begun)[rank], signal.SIGKILL)
        status, words = end_of(begun)
        assert status == 1 and len(words) == 1, (status, words)
        assert f"a worker process died: rank {rank} " in words[0] and "--resume" in words[0]
        if rank:
            assert Run.open(tmp_path / run).status == "interrupted" and "checkpoint of step" in words[0]
    assert end_of(train("--resume", "run0", folder=tmp_path))[0] == 0
    same(tmp_path / "run0", alone)


def test_a_worker_that_falls_silent_is_given_up(tmp_path):
    words = ("-m", "sigmapca_cli", "train", *SMALL, *BATCH, "steps=100000", "checkpoint.every_steps=20")
    begun = torchrun(2, *words, "--run-dir", "run", folder=tmp_path, SIGMAPCA_RANK_TIMEOUT="4")
    until((tmp_path / "run" / "checkpoint.h5").exists, "the first checkpoint")
    silent = workers(begun)[1]
    os.kill(silent, signal.SIGSTOP)
    log = tmp_path / "run" / "train.log"
    until(lambda: "a worker process died: rank 1 " in log.read_text(), "the line about it")
    os.kill(silent, signal.SIGKILL)  # else torchrun waits for half a minute
    status, said = end_of(begun)
    assert status == 1 and len(said) == 1 and "the checkpoint of step" in said[0], said


def test_torchrun_starts_again_what_died(alone, tmp_path):
    words = ("--max-restarts=1", "-m", "sigmapca_cli", "train", *SMALL, *BATCH, "steps=800")
    options = ("checkpoint.every_steps=20", "--run-dir", "run", "--if-exists", "resume")
    begun = torchrun(2, *words, *options, folder=tmp_path)
    until((tmp_path / "run" / "checkpoint.h5").exists, "the first checkpoint")
    os.kill(workers(begun)[1], signal.SIGKILL)
    assert end_of(begun)[0] == 0
    same(tmp_path / "run", alone)


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
    assert Run.open(tmp_path / "run").status != "finished"
    assert end_of(train(*words, *solver, folder=tmp_path))[0] == 0
    assert end_of(train(*words, *solver[:-1], "one", folder=tmp_path, processes=1))[0] == 0
    one, run = Run.open(tmp_path / "one"), Run.open(tmp_path / "run")
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
    assert "identifiability/words" in Run.open(tmp_path / "run").evaluation


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("model=fastica",), "needs all rows in one process"),
        (("-m", "a=1,2"), "a sweep is not spread over 2 processes"),
        (("batch_size=1", "sigma=data", "model.centring=data"), "fewer rows than the 2 processes"),
        (("k=1000",), "lower k"),
    ],
)
def test_refusals_are_one_line_said_once(tmp_path, arguments, words):
    status, said = end_of(train(*SMALL[:-2], *arguments, folder=tmp_path))
    assert status == 1 and len(said) == 1 and words in said[0], said
    assert not list(tmp_path.rglob("run.h5"))
