"""One owner a folder: the living is respected, the dead is not, and of many one wins."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sigmapca_cli.errors import InputError
from sigmapca_cli.processes import process_start
from sigmapca_cli.runs.lock import FolderLock, Owner, is_owned, myself, read_owner


def leave(folder: Path, owner: Owner, number: int = 1) -> None:
    (folder / f".owner.{number}").write_text(json.dumps(asdict(owner)))


def test_second_owner_is_refused_until_release(tmp_path: Path) -> None:
    first = FolderLock(tmp_path).acquire()
    with pytest.raises(InputError, match=f"in use by process {os.getpid()}") as error:
        FolderLock(tmp_path).acquire()
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)
    first.release()
    first.release()
    assert not is_owned(tmp_path)
    with FolderLock(tmp_path):
        assert is_owned(tmp_path)
    assert not is_owned(tmp_path)


def test_another_process_is_refused_in_one_line(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        take = f"from sigmapca_cli.runs.lock import FolderLock; FolderLock({str(tmp_path)!r}).acquire()"
        ran = subprocess.run([sys.executable, "-c", take], capture_output=True, text=True)
    assert ran.returncode == 1
    assert f"in use by process {os.getpid()}" in ran.stderr.splitlines()[-1]


def test_a_dead_owner_gives_way(tmp_path: Path) -> None:
    die = (
        "import os; from sigmapca_cli.runs.lock import FolderLock;"
        f"FolderLock({str(tmp_path)!r}).acquire(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", die]).returncode == 9
    owner = read_owner(tmp_path)
    assert owner is not None and not owner.released and not is_owned(tmp_path)
    with FolderLock(tmp_path):
        assert is_owned(tmp_path)


def test_a_reused_process_number_is_not_believed(tmp_path: Path) -> None:
    leave(tmp_path, replace(myself(), started="1"))
    assert not is_owned(tmp_path)
    leave(tmp_path, replace(myself(), boot="an earlier start of this machine"))
    assert not is_owned(tmp_path)
    leave(tmp_path, myself())
    assert is_owned(tmp_path)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # closed when the child has ended, which nobody has waited for yet
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(child.pid) is None
    child.wait()


def test_an_owner_elsewhere_is_assumed_alive_until_its_file_is_removed(tmp_path: Path) -> None:
    leave(tmp_path, replace(myself(), host="another-host"))
    assert is_owned(tmp_path)
    with pytest.raises(InputError, match=r"another-host; if that is gone, remove .*/\.owner\.\*"):
        FolderLock(tmp_path).acquire()
    (tmp_path / ".owner.1").unlink()
    with FolderLock(tmp_path):
        assert is_owned(tmp_path)


@pytest.mark.parametrize(
    ("job", "restarts", "wins"), [("7", 1, True), ("7", 0, False), ("8", 1, False), ("", 1, False)]
)
def test_a_requeued_slurm_job_takes_its_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, restarts: int, wins: bool
) -> None:
    leave(tmp_path, replace(myself(), host="another-host", slurm_job_id="7" if job else ""))
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setenv("SLURM_RESTART_COUNT", str(restarts))
    if wins:
        FolderLock(tmp_path).acquire().release()
    else:
        with pytest.raises(InputError):
            FolderLock(tmp_path).acquire()


def test_a_number_is_never_used_twice(tmp_path: Path) -> None:
    """Two processes saw the same dead owner: the slower finds the number taken, even if free again."""
    leave(tmp_path, replace(myself(), started="1"))
    for _ in range(3):
        FolderLock(tmp_path).acquire().release()
    numbers = sorted(int(p.name.rpartition(".")[2]) for p in tmp_path.glob(".owner.*"))
    assert numbers == [1, 2, 3, 4]


def test_damaged_lock_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".owner.1").write_text("{")
    with pytest.raises(InputError, match=r"\.owner\.1: damaged"):
        FolderLock(tmp_path).acquire()
