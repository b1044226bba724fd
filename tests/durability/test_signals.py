"""Signals end a run in an orderly way, with the status that a scheduler or a shell script goes by."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from forked import end_of, spawn
from fuzz_corpus import seeds
from mechanisms import every
from shell import run_command

from sigmapca_cli.storage.checkpoint import load
from sigmapca_cli.storage.lock import is_owned
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.errors import Stopped
from sigmapca_cli.system.signals import Guard

PLANTED = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2")
LONG = (*PLANTED, "k=4", "steps=2000000")
EXPECTED = {"SIGINT": 130, "SIGTERM": 75, "SIGHUP": 75, "SIGUSR1": 75, "SIGUSR2": 75}


def heard() -> None:
    """In the child: signals as a shell's foreground job has them, also where these tests run in the background."""
    for name in EXPECTED:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def start(folder: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sigmapca_cli", "train", *LONG, "threads=1", "--run-dir", name]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heard,
    )


@pytest.fixture(params=every([5, 1], [1]))
def children(tmp_path, request):
    """A long run for each of so many signals; none outlives the test."""
    started = {name: start(tmp_path, name) for name in list(EXPECTED)[: request.param]}
    yield started
    for child in started.values():
        child.kill()
        child.communicate()


def test_a_signal_saves_and_ends_with_its_status(tmp_path, children):
    for name, child in children.items():
        lines = tmp_path / name / "metrics.jsonl"
        until = time.monotonic() + 120
        while not (lines.exists() and lines.stat().st_size):
            assert child.poll() is None and time.monotonic() < until, child.stderr and child.stderr.read()
            time.sleep(0.05)
    longest = 0.0
    for name, child in children.items():
        began = time.monotonic()
        child.send_signal(getattr(signal, name))
        _, errors = child.communicate(timeout=30)
        longest = max(longest, time.monotonic() - began)
        assert child.returncode == EXPECTED[name], errors
        assert len(errors.strip().splitlines()) == 1
        assert errors.startswith(f"sigmapca: {name} at step ") and f"--resume {name}" in errors
        run = StoredRun.open(tmp_path / name)
        assert run.status == "interrupted" and run.resumable and not is_owned(run.folder)
        tensors, meta = load(run.checkpoint)
        assert np.array_equal(tensors["state/W"], run.filters)
        # Stored every 50 steps, and at the end of every epoch of 32.
        last = max(meta["step"] // every * every for every in (50, 32))
        assert run.metrics["step"][-1] == last, "the metrics reach up to the checkpoint"
    print(f"longest time from signal to exit: {longest:.2f} s")


def test_a_second_ctrl_c_ends_at_once():
    def stubborn() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        with Guard() as guard, guard.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            assert guard.received == signal.SIGINT
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("still alive")

    assert end_of(spawn(stubborn)) == 130


def test_outside_the_steps_a_signal_ends_the_run_and_a_launchers_handler_gets_its_turn():
    def waiting() -> None:
        try:
            with Guard():
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(10)
        except Stopped as problem:
            assert problem.exit_status == 75
            os._exit(7)

    def launched() -> None:
        signal.signal(signal.SIGUSR2, lambda number, frame: os._exit(9))
        with Guard() as guard:
            with guard.deferring():
                os.kill(os.getpid(), signal.SIGUSR2)
                requeue = guard.previous_handler()
            assert requeue is not None
            requeue()

    assert end_of(spawn(waiting)) == 7
    assert end_of(spawn(launched)) == 9


def test_what_is_ignored_on_purpose_stays_ignored():
    def ignoring() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Guard() as guard:
            os.kill(os.getpid(), signal.SIGHUP)
            assert guard.received is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN

    assert end_of(spawn(ignoring)) == 0


@pytest.mark.full
def test_two_ctrl_c_at_once_leave_one_line(tmp_path, children):
    child = children["SIGINT"]
    lines = tmp_path / "SIGINT" / "metrics.jsonl"
    until = time.monotonic() + 120
    while not (lines.exists() and lines.stat().st_size):
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1].splitlines()
    assert child.returncode == 130 and len(said) == 1 and said[0].startswith("sigmapca: "), said


SENDS = """
import os, signal, sys

def look(frame, event, argument):
    if frame.f_code.co_filename.replace(os.sep, "/").endswith({file!r}):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

sys.setprofile(look)
"""
READERS = {
    "x.tiff": ("tiff", "PIL/TiffImagePlugin.py", "data=images"),
    "x.wav": ("wav", "scipy/io/wavfile.py", "data=signals"),
    "data_batch_1": ("cifar_python", "readers/unpickle.py", "data=cifar10"),
    "cifar-10-python.tar.gz": ("cifar_archive", "tarfile.py", "data=cifar10"),
    "x.h5": ("h5", "readers/hdf5.py", "data=array"),
}


@pytest.mark.parametrize("command", ["data", "train"])
@pytest.mark.parametrize("name", every(READERS, ["x.tiff"]))
def test_a_signal_while_a_file_is_read_is_no_damage_of_the_file(tmp_path, name, command):
    kind, library, data = READERS[name]
    (tmp_path / name).write_bytes(seeds(kind)[0])
    words = [name] if command == "data" else [data, f"data.path={name}", "k=1"]
    ended = run_command((command, *words), tmp_path, {}, before=SENDS.format(file=library))
    assert ended.returncode == 75, (ended.stdout, ended.stderr)
    assert ended.stderr.startswith("sigmapca: SIGTERM ") and len(ended.stderr.splitlines()) == 1
    assert "damaged" not in ended.stdout


MADE_OTHERWISE = """
import os, signal
from sigmapca_cli.system import errors, messages
def show_warnings():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise errors.InputError("") from None
messages.show_warnings = show_warnings
"""
BEFORE_MAIN = """
import sigmapca_cli.cli
def main():
    raise KeyboardInterrupt
sigmapca_cli.cli.main = sigmapca_cli.cli.program.__globals__["main"] = main
"""


@pytest.mark.parametrize("before", [MADE_OTHERWISE, BEFORE_MAIN], ids=["made another error", "before main"])
def test_an_early_ctrl_c_is_one_line_and_130(tmp_path, before):
    """A library that is being imported makes another error of it, and before `main` nothing would catch it."""
    ended = run_command(["models"], tmp_path, {}, before=before)
    assert (ended.returncode, ended.stderr) == (130, "sigmapca: stopped by Ctrl-C\n")


def test_next_to_nothing_is_imported_before_ctrl_c_is_answered():
    code = "import sys; before = set(sys.modules); import sigmapca_cli.cli; print(*set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) <= {"sigmapca_cli", "sigmapca_cli.cli", "__future__"}


def test_a_disk_that_cannot_be_read_is_not_called_standard_output(tmp_path):
    before = """
import errno, os
from sigmapca_cli.system import messages
def show_warnings():
    raise OSError(errno.EIO, os.strerror(errno.EIO))
messages.show_warnings = show_warnings
"""
    ended = run_command(["models"], tmp_path, {}, before=before)
    assert ended.returncode == 1 and "standard output" not in ended.stderr and "--debug" in ended.stderr


@pytest.mark.full
@pytest.mark.parametrize("count", [1, 2, 3])
def test_ctrl_c_while_the_processes_of_reproduce_begin_is_one_line(tmp_path, count):
    """A terminal sends it to all of them: here as soon as so many have begun, the tracker of resources among them."""
    command = [sys.executable, "-m", "sigmapca_cli", "reproduce", "signals-orthogonal", "--quick", "-j", "2"]
    run = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heard,
    )
    begun = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    while run.poll() is None and len(begun.read_text().split()) < count:
        time.sleep(0.01)
    time.sleep(0.1 * count)
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130 and errors.count("\n") == 1 and "Ctrl-C" in errors
