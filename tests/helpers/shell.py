"""`sigmapca` as a shell sees it, without the second that each new interpreter takes to import its libraries.

One interpreter that has imported them forks a process for every command. So each command has a process of its own,
with its own folder, environment, standard output and exit status, and nothing of it is left behind.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Result = subprocess.CompletedProcess[str]

SERVER = """
import gc, json, os, signal, sys, time, warnings
import jinja2, matplotlib.backends.backend_pdf, typer._adapters
import h5py, h5py._hl.dims, hydra, numpy, omegaconf, PIL.Image, rich.console, scipy.linalg, sklearn.decomposition, torch
import sigmapca_cli.cli.app, sigmapca_cli.cli.job, sigmapca_cli.cli.streams, sigmapca_cli.system.messages
import sigmapca_cli.system.processes
import sigmapca_cli.cli.sweeps, sigmapca_cli.evaluation.agreement, sigmapca_cli.launchers.vectorized
import sigmapca_cli.runner.run, sigmapca_cli.runner.shared, sigmapca_cli.runner.grouped
import pandas, matplotlib.backends.backend_agg, sigmapca_cli.figures.run, sigmapca_cli.evaluation.certify
import sigmapca_cli.data.matrix.arrays, sigmapca_cli.data.describe.describe, sigmapca_cli.solution.new_rows
import sigmapca_cli.data.synthetic.planted, sigmapca_cli.report.build, sigmapca_cli.cli.outputs
from sigmapca_cli.cli import program
from sigmapca_cli.composition.compose import compose_job

from sigmapca_cli.runner.unread import BY_CHOICE, keys_of_choices
from sigmapca_cli.settings.conf_files import groups
for group in BY_CHOICE:
    keys_of_choices(group)
# Hydra's plugins are found, its grammar is made, and what it composes is kept: half of a command's time.
compose_job(["data=planted", "k=3"])
with sigmapca_cli.system.processes.blas(1):
    pass  # its libraries are found
gc.freeze()

def compose(words):
    chosen = [word for word in words if word.partition("=")[0] in groups()]
    try:
        compose_job([*chosen, "seed=1"])
    except Exception:
        pass  # the command says why

def run(folder, environment, arguments, out, err, before):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((0, os.devnull), (1, out), (2, err)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    sys.argv = ["sigmapca", *arguments]
    sys.orig_argv = [sys.executable, "-m", "sigmapca_cli", *arguments]
    try:
        exec(before, {})
        program()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    task = json.loads(line)
    kill_after = task.pop("kill_after")
    compose(task["arguments"])
    child = os.fork()
    if child == 0:
        run(**task)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(status, file=answers, flush=True)
"""


class Server:
    """The interpreter that forks a process for every command."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, task: Mapping[str, object]) -> int:
        """Run one command and return its exit status; minus the signal's number if one has killed it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(task), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@cache
def server() -> Server:
    """The one server of this process of tests; it ends when its input does."""
    return Server()


def run_command(
    arguments: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    timeout: float = 120,
    before: str = "",
    kill_after: float | None = None,
) -> Result:
    """Run `sigmapca ARGUMENTS` in a folder.

    Python's code in `before` is executed first in the command's process; after `kill_after` seconds it gets SIGKILL.
    A new interpreter runs it where a variable of the environment is one that an interpreter reads when it starts.
    """
    variables = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **environment}
    if any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment):
        command = [sys.executable, "-m", "sigmapca_cli", *arguments]
        return subprocess.run(
            command, cwd=folder, env=variables, text=True, capture_output=True, timeout=timeout, check=False
        )
    with tempfile.TemporaryDirectory() as aside:
        out, err = (str(Path(aside) / name) for name in ("out", "err"))
        status = server().run(
            {
                "folder": str(folder),
                "environment": variables,
                "arguments": arguments,
                "out": out,
                "err": err,
                "before": before,
                "kill_after": kill_after,
            }
        )
        # A command that was killed at once has not opened them yet.
        texts = [Path(path).read_text("utf-8") if os.path.exists(path) else "" for path in (out, err)]
    return subprocess.CompletedProcess(["sigmapca", *arguments], status, *texts)


def until(condition: Callable[[], object], what: str, seconds: float = 150) -> None:
    """Wait for something; `what`: words for a failure."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)
