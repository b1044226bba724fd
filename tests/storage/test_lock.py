"""One owner a folder: the living is respected, the dead is not, and of many one wins."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from forked import end_of, spawn

from sigmapca_cli.storage import lease
from sigmapca_cli.storage.lease import Beat, Owner, beat_file, myself
from sigmapca_cli.storage.lock import FolderLock, InUse, is_owned, read_owner
from sigmapca_cli.storage.sidecars import append
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import process_start


def leave(folder: Path, owner: Owner, number: int = 1) -> None:
    (folder / f".owner.{number}").write_text(json.dumps(asdict(owner)))


def test_second_owner_is_refused_until_release(tmp_path: Path) -> None:
    first = FolderLock(tmp_path).acquire()
    with pytest.raises(InUse, match=f"in use by process {os.getpid()}") as error:
        FolderLock(tmp_path).acquire()
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)
    assert error.value.exit_status == 75
    first.release()
    first.release()
    assert not is_owned(tmp_path)
    with FolderLock(tmp_path):
        assert is_owned(tmp_path)
    assert not is_owned(tmp_path)


def test_a_dead_owner_gives_way(tmp_path: Path) -> None:
    die = (
        "import os; from sigmapca_cli.storage.lock import FolderLock;"
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
    leave(tmp_path, myself())
    assert is_owned(tmp_path)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # closed when the child has ended, which nobody has waited for yet
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(child.pid) is None
    child.wait()


@pytest.mark.parametrize("place", [{"boot": "another machine"}, {"space": "pid:[1] time:[1]"}])
def test_an_owner_elsewhere_goes_by_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: dict
) -> None:
    """Its host name, which may be ours, says nothing; one that gives signs of life keeps the folder."""
    monkeypatch.setenv("SIGMAPCA_LEASE", "1")
    elsewhere = replace(myself(), **place)
    leave(tmp_path, elsewhere)
    beat = Beat(beat_file(tmp_path, 1), elsewhere.lease)
    assert is_owned(tmp_path)
    with pytest.raises(InUse, match="in use by process"):
        FolderLock(tmp_path).acquire()
    beat.stop()
    beat.path.unlink()
    assert not is_owned(tmp_path)
    began = time.monotonic()
    with FolderLock(tmp_path):
        assert time.monotonic() - began >= 1, "for the time of its lease it may still live"
    leave(tmp_path, elsewhere, 3)
    began = time.monotonic()
    with FolderLock(tmp_path):
        assert time.monotonic() - began < 0.5, "the same owner is not waited for in every folder of a sweep"


def test_a_clock_that_is_wrong_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's clock is ten years late: whether its time changes is what counts."""
    monkeypatch.setenv("SIGMAPCA_LEASE", "2")
    leave(tmp_path, replace(myself(), boot="a machine with another clock"))
    beat = beat_file(tmp_path, 1)
    beat.touch()
    stop = threading.Event()

    def late() -> None:
        seconds = 0
        while not stop.wait(0.3):
            seconds += 1
            os.utime(beat, (1e9 + seconds, 1e9 + seconds))

    thread = threading.Thread(target=late)
    thread.start()
    try:
        with pytest.raises(InUse):
            FolderLock(tmp_path).acquire()
    finally:
        stop.set()
        thread.join()


def test_a_lease_that_claims_to_last_for_ever_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "LONGEST_LEASE", 0.5)
    leave(tmp_path, replace(myself(), boot="elsewhere", lease=1e9))
    FolderLock(tmp_path).acquire().release()


def test_who_has_lost_a_folder_writes_nothing_more(tmp_path: Path) -> None:
    other = replace(myself(), boot="elsewhere")
    with FolderLock(tmp_path):
        replace_file(tmp_path / "run.h5", b"mine")
        append(tmp_path / "metrics.jsonl", b"mine")
        leave(tmp_path, other, 2)
        for write in (
            lambda: replace_file(tmp_path / "run.h5", b"late"),
            lambda: append(tmp_path / "metrics.jsonl", b"late"),
        ):
            with pytest.raises(InUse, match="taken over by process"):
                write()
    assert (tmp_path / "run.h5").read_bytes() == (tmp_path / "metrics.jsonl").read_bytes() == b"mine"
    assert read_owner(tmp_path) == other, "its own release frees nothing"
    assert not list(tmp_path.glob("*.aside"))


def test_an_owner_of_an_older_version_elsewhere_is_assumed_alive_until_its_file_is_removed(
    tmp_path: Path,
) -> None:
    leave(tmp_path, replace(myself(), host="another-host", space="", lease=0.0))
    assert is_owned(tmp_path)
    with pytest.raises(InUse, match=r"another-host; if that is gone, remove .*/\.owner\.\*"):
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
    old = {"space": "", "lease": 0.0}
    leave(tmp_path, replace(myself(), host="another-host", slurm_job_id="7" if job else "", **old))
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setenv("SLURM_RESTART_COUNT", str(restarts))
    if wins:
        FolderLock(tmp_path).acquire().release()
    else:
        with pytest.raises(InUse):
            FolderLock(tmp_path).acquire()


def test_a_number_is_never_used_twice(tmp_path: Path) -> None:
    """Two processes saw the same dead owner: the slower finds the number taken, even if free again."""
    leave(tmp_path, replace(myself(), started="1"))
    for _ in range(3):
        FolderLock(tmp_path).acquire().release()
    numbers = sorted(int(p.name.rpartition(".")[2]) for p in tmp_path.glob(".owner.*"))
    assert numbers == [1, 2, 3, 4]


WRITERS = {
    "a file": lambda folder: replace_file(folder / "run.h5", b"late"),
    "lines": lambda folder: append(folder / "metrics.jsonl", b"late"),
    "a new file": lambda folder: append(folder / "train.log", b"late"),
}


@pytest.mark.parametrize("how", ["copied", "moved", "removed", "emptied"])
@pytest.mark.parametrize("what", WRITERS)
def test_a_folder_that_was_replaced_is_not_written_to(tmp_path: Path, how: str, what: str) -> None:
    """The other folder has the marks of an owner that has released it, and of the same number."""
    good, folder = tmp_path / "good", tmp_path / "run"
    for each in (good, folder):
        each.mkdir()
    with FolderLock(good):
        replace_file(good / "run.h5", b"good")
        append(good / "metrics.jsonl", b"good")
    before = {path.name: path.read_bytes() for path in good.iterdir()}
    with FolderLock(folder):
        shutil.rmtree(folder)
        if how == "copied":
            shutil.copytree(good, folder)
        elif how == "moved":
            good.rename(folder)
        elif how == "emptied":
            folder.mkdir()
        with pytest.raises(InUse, match="removed or replaced") as lost:
            WRITERS[what](folder)
        assert lost.value.exit_status == 1 and "\n" not in str(lost.value)
    found = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
    assert found == (before if how in ("copied", "moved") else {})


def test_a_forked_child_frees_nothing_of_its_parent(tmp_path: Path) -> None:
    def leave_as_if_it_were_ours() -> None:
        lock.release()

    with FolderLock(tmp_path) as lock:
        assert end_of(spawn(leave_as_if_it_were_ours)) == 0
        assert is_owned(tmp_path)
        replace_file(tmp_path / "run.h5", b"mine")
        with pytest.raises(InUse):
            FolderLock(tmp_path).acquire()


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_the_marks_of_older_versions_are_honoured(tmp_path: Path, version: str) -> None:
    noted = {key: value for key, value in asdict(myself()).items() if key != "token"} | {"claim": False}
    if version == "0.1":
        noted = {
            key: noted[key] for key in ("host", "boot", "pid", "started", "slurm_job_id", "slurm_restarts")
        }
    (tmp_path / ".owner.3").write_text(json.dumps(noted))
    assert is_owned(tmp_path)
    with pytest.raises(InUse) as refused:
        FolderLock(tmp_path).acquire()
    assert refused.value.exit_status == 75
    (tmp_path / ".owner.3").write_text(json.dumps(noted | {"started": "1"}))  # its process is dead
    with FolderLock(tmp_path) as lock:
        assert lock.number == 4


def test_a_file_system_without_hard_links_has_one_owner_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with FolderLock(tmp_path), pytest.raises(InUse):
        FolderLock(tmp_path).acquire()


def test_damaged_lock_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".owner.1").write_text("{")
    with pytest.raises(InputError, match=r"\.owner\.1: damaged"):
        FolderLock(tmp_path).acquire()
