"""The command's words and exit statuses."""

import json
import signal
import subprocess
import sys
import time

import pytest
from shell import run_command

from sigmapca_cli.reproduce.command import MINUTES
from sigmapca_cli.reproduce.registry import EXPERIMENTS, pick
from sigmapca_cli.system.errors import InputError


def call(*arguments, cwd):
    """The real command in a folder of its own."""
    return run_command(("reproduce", *arguments), cwd, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--list"),
        (("cifar-filter",), "did you mean cifar-filters?"),
        (("--all", "rica-beta"), "either names or --all"),
        (("rica-beta", "--data", "cifar"), "did you mean cifar10?"),
        (("rica-beta", "--solver", "newt"), "did you mean newton?"),
        (("rica-beta", "--solver", "newton", "--recipe", "paper"), "trains nothing"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, words, tmp_path):
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_list_names_all_and_says_how_long_they_take(tmp_path):
    done = call("--list", cwd=tmp_path)
    *lines, unit = done.stdout.splitlines()
    measured = json.loads(MINUTES.read_text("utf-8"))
    assert done.returncode == 0 and [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert measured and [line.split()[0] for line in lines if " min" in line] == [
        name for name in EXPERIMENTS if name in measured
    ]
    assert "CPU minutes" in unit


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_schedulers_signal_is_75_and_the_same_command_goes_on(jobs, tmp_path):
    command = [sys.executable, "-m", "sigmapca_cli", "reproduce", "points-uniform", "--quick", "-j", jobs]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline(), (
        "the first run is there, and the others are not"
    )
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=240)
    assert child.returncode == 75 and len(errors.splitlines()) == 1 and "SIGTERM" in errors, errors
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("outputs/*/*/run.h5")}
    finished = [path for path in kept if 'status": "finished"' in path.read_bytes().decode("latin-1")]
    assert finished and (len(finished) < 7 or jobs == "2"), "workers may have ended all that was left"
    time.sleep(1)  # its workers look once a second whether it is still there
    again = call("points-uniform", "--quick", "-j", jobs, cwd=tmp_path)
    assert again.returncode == 0 and "6 of 6 claims held" in again.stdout, again.stderr
    assert all(path.stat().st_mtime_ns == kept[path] for path in finished), "finished runs are not made again"


def test_an_experiment_is_found_by_the_figure_of_the_paper():
    assert [one.name for one in pick(["Figure 5", "figure-9", "signals-orthogonal"])] == [
        "signals-orthogonal", "rotational-indeterminacy",
    ]  # fmt: skip
    with pytest.raises(InputError, match="figure 99"):
        pick(["figure 99"])
