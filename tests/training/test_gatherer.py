"""Batches from a process of their own: the same bits, and no run depends on the life of that process."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from mechanisms import every

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.training.batches import Batch, Batches
from sigmapca_cli.training.forked_batches import ForkedBatches, is_worth_a_fork, open_batches

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) == 1, reason="needs Linux and a second core"
)


def batches(n=1003, size=16, **options):
    source = build(DataConfig(name="planted", n=n, p=8, k=4, group=2, standardise="none"))
    return Batches(source, size, 3, centre=True, **options)


def copied(generator):
    return [Batch(b.x.copy(), float(b.power)) for b in generator]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a.x, b.x) and a.power == b.power for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("size", [16, 200, 2000])
def test_the_same_batches_as_without(size):
    plain, forked = batches(size=size), batches(size=size)
    with open_batches([forked], 10_000) as ahead:
        assert isinstance(ahead, ForkedBatches)
        for epoch, first in ((0, 0), (1, 0), (1, 2)):
            assert same(copied(ahead.epoch(epoch, first)), copied(plain.epoch(epoch, first)))
    assert not ahead.prefetcher.open


def test_an_epoch_left_early_does_not_disturb_the_next():
    plain, forked = batches(n=20_000), batches(n=20_000)
    with open_batches([forked], 10_000) as ahead:
        started = ahead.epoch(0)
        for _ in range(3):
            next(started)
        started.close()
        assert same(copied(ahead.epoch(1)), copied(plain.epoch(1)))


def test_a_killed_process_is_done_without(caplog):
    plain, forked = batches(n=40_000), batches(n=40_000)
    found = []
    with open_batches([forked], 10_000) as ahead:
        for number, batch in enumerate(ahead.epoch(0)):
            if number == 100:
                os.kill(ahead.prefetcher.pid, signal.SIGKILL)
            found.append(Batch(batch.x.copy(), float(batch.power)))
        assert ahead.died and same(copied(ahead.epoch(1)), copied(plain.epoch(1)))
    assert same(found, copied(plain.epoch(0)))
    assert "going on without it" in caplog.text


def test_short_runs_do_without():
    assert not is_worth_a_fork(batches(), 10)


def children(pid):
    """Return the forks of a process: their command line is its own. `git`, which it asks for the commit, is none."""
    found = []
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        for text in file.read().split():
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{text}/cmdline") as command:
                if "sigmapca_cli" in command.read():
                    found.append(int(text))
    return found


@pytest.mark.parametrize("number", every([signal.SIGKILL, signal.SIGTERM], [signal.SIGTERM]))
def test_the_process_ends_with_the_run(tmp_path, number):
    command = ["train", "data=planted", "data.n=50000", "k=12", "steps=1000000", "threads=1"]
    run = subprocess.Popen(
        [sys.executable, "-m", "sigmapca_cli", *command],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (found := children(run.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    while not [path for path in tmp_path.glob("outputs/nlpca/*/metrics.jsonl") if path.stat().st_size]:
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    # As schedulers do: to every process of the job, the one that gathers among them.
    os.killpg(run.pid, number) if number == signal.SIGTERM else os.kill(run.pid, number)
    assert run.wait(30) == (75 if number == signal.SIGTERM else -signal.SIGKILL)
    while any(os.path.exists(f"/proc/{pid}") for pid in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in found)
    saved = list(tmp_path.glob("outputs/nlpca/*/checkpoint.h5"))
    assert len(saved) == (number == signal.SIGTERM)
