"""A multirun: its folder, what happens when one of its jobs fails, and the table at its end.

Every job notes a failure in its own folder, so that the table can be made for any launcher, by reading.
"""

import os
import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

from sigmapca_cli.atomic import write_failed
from sigmapca_cli.cli.searches import (
    adaptive_sweeper,
    best_lines,
    ended_by,
    refuse_nothing_to_search,
    search_defaults,
    silence,
    value_of,
)
from sigmapca_cli.errors import InputError, RunFailed, SigmapcaError, Stopped
from sigmapca_cli.launchers.failures import SweepContext, forget_refusals
from sigmapca_cli.signals import stopped_before
from sigmapca_cli.untrusted_files import refuse_irregular

# Where and how the jobs run, not what they compute: the same sweep on another launcher is the same sweep.
PLACE = (
    "hydra/launcher=",
    "hydra.launcher.",
    "outputs=",
    "if_exists=",
    "strict=",
    "detach=",
    "threads=",
    "device=",
    "tracker=",
    "tags=",
    "note=",
    "hydra.sweeper.n_trials=",  # more trials of the same search
)

# What joblib, concurrent.futures and Ray raise when a worker process dies.
KILLED = ("TerminatedWorkerError", "BrokenProcessPool", "WorkerCrashedError", "NodeDiedError")


def sweep_folder(overrides: list[str], flags: list[str]) -> Path:
    """The folder of a sweep: named by its command, so that the same command again finds and resumes it.

    The order counts, as jobs are numbered by it.
    """
    import hashlib

    from sigmapca_cli.runs.folders import outputs_root

    what = [o for o in overrides if not o.startswith(PLACE)]
    digest = hashlib.sha256("\0".join([*what, "", *flags]).encode()).hexdigest()[:8]
    return outputs_root(value_of(overrides, "outputs")) / "sweeps" / digest


def run_sweep(task: Callable[..., Any], overrides: list[str], flags: list[str], *, fail_fast: bool) -> None:
    """Run all jobs, then say what failed and why; RunFailed when anything did."""
    from sigmapca_cli.processes import refuse_several

    refuse_several(
        "a sweep", "start it without torchrun; hydra/launcher=joblib or slurm runs its jobs side by side"
    )
    if value_of(overrides, "run_dir"):
        raise InputError("--run-dir names the folder of one run; a sweep has hydra.sweep.dir=…")
    given = value_of(overrides, "hydra.sweep.dir")
    folder = Path(given).absolute() if given else sweep_folder(overrides, flags)
    overrides = with_defaults(overrides, flags, folder)
    if not flags or flags == ["--multirun"]:  # another configuration may have hydra.sweeper.params
        refuse_nothing_to_search(overrides)
    fresh = not folder.exists()
    make(folder)
    try:
        run_in(folder, task, overrides, flags, fail_fast)
    except InputError:
        if fresh:
            clear(folder)
        raise


def run_in(
    folder: Path, task: Callable[..., Any], overrides: list[str], flags: list[str], fail_fast: bool
) -> None:
    """Run all jobs in the sweep's folder, and conclude."""
    from sigmapca_cli.runs.find import shortened
    from sigmapca_cli.runs.lock import FolderLock

    context = SweepContext(fail_fast)
    # A partial of a module-level function is pickled by every launcher, and its context with it.
    task = update_wrapper(partial(task, context=context), task)
    # A second process with the same command would run the same jobs again.
    with FolderLock(folder):
        refuse_links_in(folder)
        forget_refusals(folder)
        print(f"sweep: {shortened(folder)}", flush=True)
        status = launch(task, overrides, flags, folder)
    if detached(overrides):
        print(f"detached: `sigmapca runs {shortened(folder)}` shows how the jobs stand")
        return
    conclude(folder, status, overrides, context)


def refuse_links_in(folder: Path) -> None:
    """Raise InputError for a link or a special file in a sweep's folder: jobs would write where it leads."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                refuse_irregular(entry.path)


def with_defaults(overrides: list[str], flags: list[str], folder: Path) -> list[str]:
    """The overrides with what a sweep adds: its folder, resuming, its launcher, and `detach` under its full name."""
    from sigmapca_cli.quoting import override

    detach = value_of(overrides, "detach")
    made = [o for o in overrides if not o.startswith(("detach=", "hydra.sweep.dir="))]
    if detach is not None:
        if not is_slurm(overrides):
            raise InputError(f"detach={detach}: only hydra/launcher=slurm leaves its jobs alone")
        made.append(f"hydra.launcher.detach={detach}")
    made.append(override("hydra.sweep.dir", str(folder)))
    if value_of(overrides, "if_exists") is None:
        made.append("if_exists=resume")
    # Another configuration may name a launcher of its own.
    own = any(flag in ("--config-dir", "--config-path", "--config-name") for flag in flags)
    if value_of(overrides, "hydra/launcher") is None and not own:
        made.append("hydra/launcher=vectorized")
    return made + search_defaults(made)


def is_slurm(overrides: list[str]) -> bool:
    """Whether the jobs go to SLURM."""
    return value_of(overrides, "hydra/launcher") == "slurm"


def detached(overrides: list[str]) -> bool:
    """Whether nobody waits for the jobs."""
    return (value_of(overrides, "hydra.launcher.detach") or "").lower() in ("true", "1", "yes", "on")


def make(folder: Path) -> None:
    """Make the sweep's folder, or say in words why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"{folder}: cannot make the sweep's folder ({problem.strerror}); choose one with outputs=…"
        ) from None


def clear(folder: Path) -> None:
    """Remove the folder of a sweep that was refused before any of its jobs began."""
    import shutil

    if all(entry.name.startswith(".") or entry.name == "multirun.yaml" for entry in folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)


def planned(overrides: list[str]) -> int:
    """How many jobs these overrides make; 0 where another sweeper than Hydra's own is to say."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if adaptive_sweeper(overrides):
        return 0
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
        return sum(len(batch) for batch in BasicSweeper.split_arguments(parsed, None))
    except HydraException:
        return 0


def launch(task: Callable[..., Any], overrides: list[str], flags: list[str], folder: Path) -> int:
    """Hand the sweep to Hydra and its launcher; the exit status that ended it early, or 0."""
    from hydra.core.plugins import Plugins

    from sigmapca_cli.cli.job import run_job
    from sigmapca_cli.conf_files import conf_folder

    silence(overrides)
    conf, flags = from_snapshots(conf_folder(), flags, folder)
    # Hydra's search for plugins swallows errors of their imports, and with them what a signal raises meanwhile.
    Plugins.instance()
    refuse_if_stopped()
    try:
        run_job(task, overrides, flags, conf=conf)
        refuse_if_stopped()
    except SystemExit as ended:  # a job that was stopped, or the first failure under --fail-fast
        return ended.code if isinstance(ended.code, int) else 1
    except SigmapcaError:
        raise
    except OSError as problem:
        raise write_failed(Path(problem.filename or folder), problem) from None
    except Exception as problem:
        # A launcher's own. What the jobs reached stands in their folders.
        if os.environ.get("SIGMAPCA_DEBUG"):
            raise
        if type(problem).__name__ in KILLED:
            print("sigmapca: a worker was killed, by the system for its memory or by hand", file=sys.stderr)
            return 75
        text = " ".join(str(problem).split())[:300]
        if adaptive_sweeper(overrides) and ended_by(text):
            return 0
        who = "search" if adaptive_sweeper(overrides) else "launcher"
        print(f"sigmapca: the {who} gave up: {type(problem).__name__}: {text}", file=sys.stderr, flush=True)
        return 1
    return 0


def refuse_if_stopped() -> None:
    """Raise Stopped if a signal has asked this process to stop, whatever became of the error that it raised."""
    if (stopped := stopped_before()) is not None:
        raise stopped


def from_snapshots(conf: Path, flags: list[str], sweep: Path) -> tuple[Path, list[str]]:
    """The configuration folder and Hydra's flags with every folder in them replaced by its copy in the sweep."""
    from sigmapca_cli.cli.targets import refuse_code
    from sigmapca_cli.launchers.snapshot import snapshot

    made = list(flags)
    for index, flag in enumerate(flags[:-1]):
        given = Path(flags[index + 1])
        if flag in ("--config-dir", "--config-path"):
            if not given.is_dir():
                raise InputError(f"{flag} {given}: no such folder")
            refuse_code(given)
            made[index + 1] = str(snapshot(given, sweep))
    if "--config-path" in made:
        place = made.index("--config-path")
        conf = Path(made[place + 1])
        del made[place : place + 2]
        return conf, made
    return snapshot(conf, sweep), made


def conclude(folder: Path, status: int, overrides: list[str], context: SweepContext) -> None:
    """Print the table, and end with the status that a script can go by."""
    from sigmapca_cli.launchers.outcome import outcomes, table
    from sigmapca_cli.runs.find import shortened
    from sigmapca_cli.runs.lock import InUse

    jobs = outcomes(folder)
    if not jobs and not status:
        raise InputError("the sweep has no jobs: one of the overrides gives an empty list of values")
    head, *lines = table(jobs, set(overrides), context.told)
    lines += best_lines(folder, jobs, overrides)
    print(f"{shortened(folder)}: {head}", *lines, sep="\n", flush=True)
    failures = [job for job in jobs if job.status == "failed"]
    failed = len(failures)
    again = "the same command again goes on"
    if status in (75, 130):
        raise Stopped(f"the sweep was stopped; {again}", exit_status=status)
    if failed:
        total = max(planned(overrides), len(jobs))
        waiting = f", {total - len(jobs)} not started" if total > len(jobs) else ""
        if not waiting and failed == total and all(job.exit_status == 2 for job in failures):
            raise InputError(f"all {failed} jobs were refused, for the reasons above: change the command")
        raise RunFailed(f"{failed} of {total} jobs failed{waiting}; {again} with what is not finished")
    elsewhere = sum(job.status == "running" for job in jobs)
    if elsewhere and not status and all(job.status in ("finished", "running") for job in jobs):
        raise InUse(f"{elsewhere} of {len(jobs)} jobs are in use by other processes; {again}")
    if status or any(job.status != "finished" for job in jobs):
        raise RunFailed(f"not every job finished; {again}")
