"""Where a run came from: commit, versions, machine, command."""

import contextlib
import os
import platform
import resource
import shlex
import socket
import subprocess
import sys
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli import __version__


@cache
def git_commit(start: Path | None = None) -> str:
    """The commit checked out around the package, read without starting git; "" outside a checkout."""
    with contextlib.suppress(OSError, IndexError):
        git = (start or Path(__file__).resolve().parents[2]) / ".git"
        if git.is_file():  # a worktree: the file names the real folder
            git = (git.parent / git.read_text().split(":", 1)[1].strip()).resolve()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        reference = head[5:]
        common = git / "commondir"
        base = (git / common.read_text().strip()).resolve() if common.exists() else git
        if (base / reference).exists():
            return (base / reference).read_text().strip()
        for line in (base / "packed-refs").read_text().splitlines():
            if line.endswith(" " + reference):
                return line.split()[0]
    return ""


@cache  # it is asked of git, and a sweep has many runs
def git_changed() -> str:
    """ "yes" when tracked files differ from the commit, "no", or "" where that cannot be told."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), "diff", "--quiet", "HEAD", "--"],
            capture_output=True,
            timeout=2,
        )
        return {0: "no", 1: "yes"}.get(done.returncode, "")
    return ""


def now() -> str:
    """The time with its zone, ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def command() -> str:
    """The command as typed: Hydra's front end rewrites sys.argv, but not sys.orig_argv."""
    interpreter, *words = sys.orig_argv
    if not words or words[0].startswith("-"):
        return shlex.join([Path(interpreter).name, *words])
    return shlex.join([Path(words[0]).name, *words[1:]])


@cache
def torch_version() -> str:
    """The version of torch, without importing it where nobody has; "" if there is none."""
    loaded = sys.modules.get("torch")
    try:
        return str(loaded.__version__) if loaded is not None else version("torch")
    except PackageNotFoundError:
        return ""


# Scheduler: the variables that together name its job.
SCHEDULERS = {
    "slurm": ("SLURM_JOB_ID",),
    "pbs": ("PBS_JOBID",),
    "lsf": ("LSB_JOBID", "LSB_JOBINDEX"),
    "gridengine": ("JOB_ID", "SGE_TASK_ID"),
    "": ("SIGMAPCA_JOB_ID",),  # set by hand: HTCondor and Kubernetes hand over what a job asks for
}


def job_id() -> str:
    """Return `scheduler:id` of the job that this process is part of, "" outside of one."""
    for scheduler, names in SCHEDULERS.items():
        if scheduler == "gridengine" and "SGE_ROOT" not in os.environ:
            continue
        values = [os.environ.get(name, "") for name in names]
        if values[0]:
            parts = [value for value in values if value not in ("", "0", "undefined")]
            return f"{scheduler}:{'.'.join(parts)}".lstrip(":")
    return ""


def environment() -> dict[str, Any]:
    """What a reader needs in order to know where a run came from."""
    return {
        "sigmapca_version": __version__,
        "torch_version": torch_version(),
        "numpy_version": np.__version__,
        "h5py_version": h5py.__version__,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "hostname": socket.gethostname(),
        "working_folder": os.getcwd(),
        "command": command(),
        "git_commit": git_commit(),
        "git_changed": git_changed(),
        "job_id": job_id(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID", ""),
    }


def peak_memory() -> int:
    """Peak resident memory of this process in bytes (the kernel counts KiB, on macOS bytes).

    On Linux not by getrusage: there a process begins with the peak of the one that started it.
    """
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
