"""Small faults of one kind: each is one line that says what to do, and leaves nothing behind that stays wrong."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from shell import run_command
from small_disks import fill

from sigmapca_cli.composition.overrides import parsed
from sigmapca_cli.launchers.failures import note
from sigmapca_cli.launchers.outcome import outcomes
from sigmapca_cli.storage.sidecars import LogFile
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.system.atomic import ABANDONED_AFTER, replace_file, replacing
from sigmapca_cli.system.errors import InputError, RunFailed

SMALL = ("data=planted", "data.n=64", "data.p=6", "data.k=2", "data.group=1", "k=2", "steps=4", "threads=1")


def test_a_wrong_sweep_command_leaves_no_mark_on_finished_jobs(sigmapca, tmp_path):
    sweep = ("train", "-m", *SMALL, "seed=0,1", f"hydra.sweep.dir={tmp_path}/sweep")
    assert sigmapca(*sweep).returncode == 0
    wrong = sigmapca(*sweep, "lr=0.5")
    assert wrong.returncode == 2 and "holds a run of another configuration" in wrong.stderr
    assert not list((tmp_path / "sweep").glob("*/error.json"))
    right = sigmapca(*sweep)
    assert right.returncode == 0, right.stderr


def test_a_mark_that_an_older_version_left_on_a_finished_job_is_forgotten(tmp_path):
    for number, status in (("0", "finished"), ("1", "failed")):
        (tmp_path / number).mkdir()
        with RunWriter(tmp_path / number, model="m") as writer:
            writer.finish(status=status)
        (tmp_path / number / "error.json").write_text(
            json.dumps({"error": "holds a run of another configuration"})
        )
    assert [job.status for job in outcomes(tmp_path)] == ["finished", "failed"]
    note(tmp_path / "0", "not converged (strict)", [], 1)
    assert [job.status for job in outcomes(tmp_path)] == ["failed", "failed"], (
        "a failure of the run itself stays"
    )


@pytest.mark.parametrize(
    "override",
    [
        "+typo=1",
        "++typo=1",
        "+data.typo=1",
        "+hydra.typo=1",
        "+hydra.job.typo=1",
        "+hydra.sweep.typo=x",
        "+seeds=1,2",
    ],
)
def test_a_key_that_nothing_reads_is_refused(override):
    with pytest.raises(InputError, match="no such key"):
        parsed(["a=1", override], sweep=True)


@pytest.mark.parametrize(
    "override",
    ["+a=1", "+regularisers.norm=1", "+experiment=first-64", "+hydra.launcher.n_jobs=2", "+hydra.job.env_set.X=1",
     "+hydra.sweep.dir=x", "+model=nlpca", "+hydra.callbacks.x._target_=y", "+optimizer.beta1=0.8"],
)  # fmt: skip
def test_a_key_that_something_reads_passes(override):
    parsed([override], sweep=True)


def test_a_typo_in_a_sweep_is_said_once_and_makes_no_folder(sigmapca, tmp_path):
    said = sigmapca("train", "-m", *SMALL, "seed=0,1", "+typo=1", f"hydra.sweep.dir={tmp_path}/sweep")
    assert said.returncode == 2 and len(said.stderr.splitlines()) == 1 and "typo: no such key" in said.stderr
    assert not (tmp_path / "sweep").exists()


def test_a_disk_that_is_full_at_the_start_is_one_line(small_disk):
    fill(small_disk, leave=0)
    for command in (
        ["train", *SMALL, "--run-dir", str(small_disk / "run")],
        ["train", *SMALL, f"outputs={small_disk}"],
        ["train", "-m", *SMALL, "seed=0,1", f"outputs={small_disk}"],
    ):
        done = run_command(tuple(command), small_disk.parent, {})
        assert done.returncode in (1, 2), done
        assert len(done.stderr.splitlines()) <= 2 and str(small_disk) in done.stderr, done.stderr
        assert "space" in done.stderr and "Traceback" not in done.stderr


def test_a_log_that_finds_no_space_says_nothing_itself(small_disk, capfd):
    log = LogFile(small_disk)
    fill(small_disk, leave=0)
    for _ in range(5000):
        log.handle(logging.makeLogRecord({"msg": "x" * 500}))
    log.close()
    assert capfd.readouterr().err == ""


def test_what_a_killed_export_left_aside_goes_with_the_next_one(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from sigmapca_cli.system.atomic import replacing\n"
        "with replacing(Path(sys.argv[1])) as aside:\n    aside.write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    target = tmp_path / "filters.npz"
    assert subprocess.run([sys.executable, "-c", code, str(target)]).returncode == -9
    (left,) = tmp_path.iterdir()
    elsewhere = (
        tmp_path / ".filters.npz.00000000-1-2-33333333.aside"
    )  # of a process that is not seen from here
    elsewhere.touch()
    replace_file(target, b"the writer has been killed")
    assert not left.exists() and elsewhere.exists()
    old = time.time() - 2 * ABANDONED_AFTER
    os.utime(elsewhere, (old, old))
    with replacing(target) as mine:
        assert not elsewhere.exists()
        replace_file(target, b"one at work is not taken away")
        mine.write_bytes(b"whole")
    assert target.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [target]


def test_a_write_that_fails_names_the_file(small_disk):
    fill(small_disk, leave=0)
    with (
        pytest.raises(RunFailed, match=r"filters\.npy: no space left"),
        replacing(small_disk / "filters.npy") as aside,
    ):
        np.save(aside.open("wb"), np.ones(10_000))


def test_a_deleted_working_folder_is_said(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    for command in ("train", "runs", "show"):
        gone.mkdir(exist_ok=True)
        code = f"cd {gone} && rmdir {gone} && {sys.executable} -m sigmapca_cli {command}"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode == 2 and "working folder has been deleted" in done.stderr.splitlines()[-1], (
            done
        )


def test_the_largest_seed_is_one_for_every_method(sigmapca, tmp_path):
    done = sigmapca(
        "train", *SMALL, "steps=null", "model=fastica", f"seed={2**63 - 1}", f"run_dir={tmp_path}/run"
    )
    assert done.returncode == 0, done.stderr
