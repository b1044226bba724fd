"""Owners that cannot be seen: other PID namespaces under our own host name, as pods and containers have them."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from forked import torture
from run_data import datasets

from sigmapca_cli.data.build_once import made_once
from sigmapca_cli.storage.lock import FolderLock, InUse, is_owned
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import InputError, RunFailed

UNSHARE = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
LEASE = "2"


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        possible = subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("skipped: making PID namespaces needs unshare and root")
    monkeypatch.setenv("SIGMAPCA_LEASE", LEASE)


def elsewhere(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Python code in a PID namespace of its own, under this host's name."""
    command = [*UNSHARE, sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def process_in(outer: subprocess.Popen[str]) -> int:
    """The number, here, of the process that `unshare` has started."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError("nothing was started")


HOLD = """
import sys, time
from pathlib import Path
from sigmapca_cli.storage.lock import FolderLock
with FolderLock(sys.argv[1]):
    print("in", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_the_living_in_another_namespace_keep_their_folder_and_the_killed_do_not(tmp_path: Path) -> None:
    owner = elsewhere(HOLD, tmp_path, 60)
    assert owner.stdout is not None and owner.stdout.readline() == "in\n"
    for _ in range(2):
        with pytest.raises(InUse) as refused:
            FolderLock(tmp_path).acquire()
        assert refused.value.exit_status == 75
    assert is_owned(tmp_path)
    os.kill(process_in(owner), signal.SIGKILL)
    owner.wait()
    with FolderLock(tmp_path):
        assert is_owned(tmp_path)


@pytest.mark.full
def test_of_many_namespaces_one_wins(tmp_path: Path) -> None:
    """All processes have number 1 there, and all of them see nobody else."""
    take = (
        "import sys, time\nfrom sigmapca_cli.storage.lock import FolderLock, InUse\n"
        "try:\n    lock = FolderLock(sys.argv[1]).acquire()\n    print('won', flush=True)\n    time.sleep(8)\n"
        "except InUse:\n    print('refused', flush=True)\n"
    )
    rivals = [elsewhere(take, tmp_path) for _ in range(4)]
    words = [rival.communicate(timeout=60)[0].strip() for rival in rivals]
    assert sorted(words) == ["refused"] * 3 + ["won"]


WRITE = """
import sys, time
import numpy as np
from pathlib import Path
from sigmapca_cli.storage import checkpoint
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.storage.write import RunWriter
folder = Path(sys.argv[1])
with FolderLock(folder):
    writer, step = RunWriter(folder, model="theirs"), 0
    while True:
        step += 1
        writer.log(step, {"loss": -1.0})
        writer.snapshot(filters=np.full((6, 2), -1.0))
        checkpoint.save(folder / "checkpoint.h5", {"W": np.full((6, 2), -1.0)}, {"step": step})
"""


@pytest.mark.full
def test_who_was_stopped_for_longer_than_the_lease_writes_nothing_after(tmp_path: Path) -> None:
    """SIGSTOP at random moments of a writer that does nothing but write; woken, it must leave our files alone."""
    from sigmapca_cli.storage import checkpoint
    from sigmapca_cli.storage.write import RunWriter

    rng = random.Random(0)
    for index in range(torture(2) if torture(0) < 60 else 30):
        folder = tmp_path / str(index)
        folder.mkdir()
        writer = elsewhere(WRITE, folder)
        until = time.monotonic() + 30
        while not (folder / "checkpoint.h5").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(process_in(writer), signal.SIGSTOP)
        with FolderLock(folder):
            mine = RunWriter(folder, model="ours", resume_step=0)
            checkpoint.save(folder / "checkpoint.h5", {"W": np.ones((6, 2))}, {"step": 1})
            mine.log(1, {"loss": 1.0})
            mine.flush()
            os.kill(process_in(writer), signal.SIGCONT)
            errors = writer.communicate(timeout=30)[1]
            assert "taken over by process" in errors.splitlines()[-1]
            tensors, meta = checkpoint.load(folder / "checkpoint.h5")
            assert meta == {"step": 1} and np.all(tensors["W"] == 1)
            assert StoredRun.open(folder).attrs["model"] == "ours"
            assert (folder / "metrics.jsonl").read_text() == '{"step": 1, "loss": 1.0}\n'
            assert not list(folder.glob("*.aside")), "nothing is left aside"
            mine.finish({"filters": np.ones((6, 2))})
        assert np.all(StoredRun.open(folder).filters == 1)


TRAIN = "import sys; from sigmapca_cli.cli import program; sys.argv[0] = 'sigmapca'; program()"
SMALL = (
    "data=planted",
    "data.n=3000",
    "data.p=16",
    "data.k=4",
    "data.group=2",
    "k=4",
    "threads=1",
    "steps=6000",
)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_run_that_died_in_one_pod_goes_on_in_another_with_the_same_bits(tmp_path: Path, how: str) -> None:
    options = ("train", *SMALL, "checkpoint.every_steps=20")
    first = elsewhere(TRAIN, *options, "--run-dir", tmp_path / "run")
    until = time.monotonic() + 60
    while not (tmp_path / "run" / "checkpoint.h5").exists():
        assert first.poll() is None and time.monotonic() < until
        time.sleep(0.002)
    os.kill(process_in(first), signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    second = elsewhere(TRAIN, "train", "--resume", tmp_path / "run")
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    assert len(errors.splitlines()) == 1 and "watching for 2 s" in errors
    if how == "stopped":
        os.kill(process_in(first), signal.SIGCONT)
        _, errors = first.communicate(timeout=60)
        assert first.returncode == 75 and re.search("taken over by process", errors), errors
        assert len(errors.splitlines()) == 1
    whole = elsewhere(TRAIN, *options, "--run-dir", tmp_path / "whole")
    assert whole.wait(timeout=120) == 0
    assert datasets(tmp_path / "run" / "run.h5") == datasets(tmp_path / "whole" / "run.h5")


def test_a_legacy_owner_file_is_no_reason_to_write_twice(tmp_path: Path) -> None:
    (tmp_path / ".owner.1").write_text('{"host": "elsewhere", "boot": "b", "pid": 1, "started": "2"}')
    with pytest.raises(InUse, match="remove"):
        FolderLock(tmp_path).acquire()
    (tmp_path / ".owner.1").write_text('{"host": "elsewhere", "boot": "b", "pid": 1, "started": 2}')
    with pytest.raises(InputError, match="damaged"):
        FolderLock(tmp_path).acquire()


MAKE = """
import sys, time
from pathlib import Path
from sigmapca_cli.data.build_once import made_once
with made_once(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    time.sleep(60)
"""


@pytest.mark.full
def test_who_makes_a_shared_file_elsewhere_is_waited_for_and_succeeded_once_killed(tmp_path: Path) -> None:
    target = tmp_path / "data.h5"
    with elsewhere(MAKE, target) as outer:
        assert outer.stdout is not None and outer.stdout.readline() == "True\n"
        began = time.monotonic()
        with (
            pytest.raises(RunFailed, match="is being made"),
            made_once(target, wait_seconds=2 * float(LEASE)),
        ):
            pass
        assert time.monotonic() - began > 2 * float(LEASE), "it gives signs of life"
        os.kill(process_in(outer), signal.SIGKILL)
        with made_once(target) as ours:
            assert ours
            target.touch()
    assert [path.name for path in tmp_path.iterdir()] == ["data.h5"]
