"""A multirun: its folder, what happens when one of its jobs fails, and the table at its end.

Every job notes a failure in its own folder, so that the table can be made for any launcher, by reading.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.cli.samples import refuse_unread
from sigmapca_cli.cli.searches import Search, best_lines, search_of, silence
from sigmapca_cli.composition.compose import Folders, load
from sigmapca_cli.composition.overrides import is_given, parsed, texts
from sigmapca_cli.launchers.failures import SweepContext, forget_refusals
from sigmapca_cli.settings.quoting import override
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.system.atomic import write_failed
from sigmapca_cli.system.errors import InputError, RunFailed, SigmapcaError, Stopped
from sigmapca_cli.system.signals import stopped_before
from sigmapca_cli.system.untrusted_files import refuse_irregular

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

# Where and how the jobs run, not what they compute: the same sweep on another launcher, or with more trials of its
# search, is the same sweep.
PLACE = (
    "hydra/launcher", "outputs", "if_exists", "strict", "detach", "threads", "device", "tracker", "tags", "note",
    "hydra.sweeper.n_trials",
)  # fmt: skip

# What joblib, concurrent.futures and Ray raise when a worker process dies.
KILLED = ("TerminatedWorkerError", "BrokenProcessPool", "WorkerCrashedError", "NodeDiedError")


@dataclass(frozen=True)
class Sweep:
    """A sweep that can begin; words: its overrides, with those that are set for it; jobs: how many, 0 if unknown."""

    folder: Path
    words: list[str]
    folders: Folders
    search: Search | None
    detached: bool
    jobs: int


def sweep_of(words: Sequence[str], folders: Folders) -> Sweep:
    """Return the sweep of these overrides. Raise InputError for those that Hydra, the schema or a sweep refuses.

    What the command and the files leave open is set here: the launcher, the folder, and what a search needs.
    """
    from sigmapca_cli.cli.job import register_launchers

    register_launchers()
    given = parsed(words, ["detach", *folders.groups()], sweep=True)
    refuse_unread(given, folders)
    config = load(texts(o for o in given if o.key_or_group != "detach"), folders, sweep=True)
    if config.run_dir:
        raise InputError("--run-dir names the folder of one run; a sweep has hydra.sweep.dir=…")
    folder = folder_of(given, config, folders)
    made = texts(o for o in given if o.key_or_group not in ("detach", "hydra.sweep.dir"))
    launcher = str(config.hydra.runtime.choices["hydra/launcher"])
    for o in given:
        if o.key_or_group == "detach":
            if launcher != "slurm":
                raise InputError(f"{o.input_line}: only hydra/launcher=slurm leaves its jobs alone")
            config.hydra.launcher.detach = o.value()
            made.append(override("hydra.launcher.detach", o.value()))
    made.append(override("hydra.sweep.dir", str(folder)))
    if launcher == "basic" and not is_given(given, "hydra/launcher"):
        made.append("hydra/launcher=vectorized")
    search = search_of(config, given)
    detached = bool(config.hydra.launcher.get("detach"))
    if search:
        return Sweep(folder, made + search.added, folders, search, detached, 0)
    return Sweep(folder, made, folders, None, detached, count(given))


def folder_of(given: Sequence[Override], config: Any, folders: Folders) -> Path:
    """Return the folder of a sweep: named by its command, so that the same command again finds and resumes it.

    The order counts, as jobs are numbered by it.
    """
    import hashlib

    if is_given(given, "hydra.sweep.dir"):
        return Path(config.hydra.sweep.dir).absolute()
    what = texts(
        o for o in given if o.key_or_group not in PLACE and not o.key_or_group.startswith("hydra.launcher.")
    )
    digest = hashlib.sha256("\0".join([*what, "", "--multirun", *folders.flags()]).encode()).hexdigest()[:8]
    return outputs_root(config.outputs) / "sweeps" / digest


def count(given: Sequence[Override]) -> int:
    """Return how many jobs these overrides make; 0 if they do not say, as with a pattern for choices."""
    sweeps = [o for o in given if o.is_sweep_override()]
    if not all(o.is_range_sweep() or hasattr(o.value(), "list") for o in sweeps):
        return 0
    return math.prod(len(list(o.sweep_iterator())) for o in sweeps)


def run_sweep(task: Callable[..., Any], words: Sequence[str], folders: Folders, *, fail_fast: bool) -> None:
    """Run all jobs, then say what failed and why; RunFailed when anything did."""
    from sigmapca_cli.system.processes import refuse_several

    refuse_several(
        "a sweep", "start it without torchrun; hydra/launcher=joblib or slurm runs its jobs side by side"
    )
    sweep = sweep_of(words, folders)
    fresh = not sweep.folder.exists()
    make(sweep.folder)
    try:
        run_in(sweep, task, fail_fast)
    except InputError:
        if fresh:
            clear(sweep.folder)
        raise


def run_in(sweep: Sweep, task: Callable[..., Any], fail_fast: bool) -> None:
    """Run all jobs in the sweep's folder, and conclude."""
    from sigmapca_cli.storage.find import shortened
    from sigmapca_cli.storage.lock import FolderLock

    context = SweepContext(fail_fast)
    # A partial of a module-level function is pickled by every launcher, and its context with it.
    task = update_wrapper(partial(task, context=context), task)
    # A second process with the same command would run the same jobs again.
    with FolderLock(sweep.folder):
        refuse_links_in(sweep.folder)
        forget_refusals(sweep.folder)
        print(f"sweep: {shortened(sweep.folder)}", flush=True)
        status = launch(sweep, task)
    if sweep.detached:
        print(f"detached: `sigmapca runs {shlex.quote(shortened(sweep.folder))}` shows how the jobs stand")
        return
    conclude(sweep, status, context)


def refuse_links_in(folder: Path) -> None:
    """Raise InputError for a link or a special file in a sweep's folder: jobs would write where it leads."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                refuse_irregular(entry.path)


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


def launch(sweep: Sweep, task: Callable[..., Any]) -> int:
    """Hand the sweep to Hydra and its launcher; the exit status that ended it early, or 0."""
    from hydra.core.plugins import Plugins

    from sigmapca_cli.cli.job import run_multirun
    from sigmapca_cli.launchers.snapshot import snapshot

    silence(sweep.search)
    further = sweep.folders.further
    copies = replace(
        sweep.folders,
        main=snapshot(sweep.folders.main, sweep.folder),
        further=snapshot(further, sweep.folder) if further else None,
    )
    # Hydra's search for plugins swallows errors of their imports, and with them what a signal raises meanwhile.
    Plugins.instance()
    refuse_if_stopped()
    try:
        run_multirun(task, sweep.words, copies)
        refuse_if_stopped()
    except SystemExit as ended:  # a job that was stopped, or the first failure under --fail-fast
        return ended.code if isinstance(ended.code, int) else 1
    except SigmapcaError:
        raise
    except OSError as problem:
        raise write_failed(Path(problem.filename or sweep.folder), problem) from None
    except Exception as problem:
        if os.environ.get("SIGMAPCA_DEBUG"):
            raise
        return gave_up(sweep, problem)
    return 0


def gave_up(sweep: Sweep, problem: Exception) -> int:
    """Say why a launcher or a search ended by an error of its own; the exit status, 0 if only its jobs have failed.

    What the jobs reached stands in their folders. Optuna's plugin raises if no trial has a value, and if the last cell
    of a grid is a failed job.
    """
    from sigmapca_cli.launchers.outcome import outcomes

    if type(problem).__name__ in KILLED:
        print("sigmapca: a worker was killed, by the system for its memory or by hand", file=sys.stderr)
        return 75
    over = sweep.search is not None and isinstance(problem, ValueError | RuntimeError)
    if over and any(job.status == "failed" for job in outcomes(sweep.folder)):
        return 0
    who = "search" if sweep.search else "launcher"
    text = " ".join(str(problem).split())[:300]
    print(f"sigmapca: the {who} gave up: {type(problem).__name__}: {text}", file=sys.stderr, flush=True)
    return 1


def refuse_if_stopped() -> None:
    """Raise Stopped if a signal has asked this process to stop, whatever became of the error that it raised."""
    if (stopped := stopped_before()) is not None:
        raise stopped


def conclude(sweep: Sweep, status: int, context: SweepContext) -> None:
    """Print the table, and end with the status that a script can go by."""
    from sigmapca_cli.launchers.outcome import outcomes, table
    from sigmapca_cli.storage.find import shortened
    from sigmapca_cli.storage.lock import InUse

    folder, jobs = sweep.folder, outcomes(sweep.folder)
    if not jobs and not status:
        raise InputError("the sweep has no jobs: one of the overrides gives an empty list of values")
    head, *lines = table(jobs, set(sweep.words), context.told)
    if sweep.search:
        lines += best_lines(folder, jobs, sweep.search, sweep.words)
    print(f"{shortened(folder)}: {head}", *lines, sep="\n", flush=True)
    failures = [job for job in jobs if job.status == "failed"]
    failed = len(failures)
    again = "the same command again goes on"
    if status in (75, 130):
        raise Stopped(f"the sweep was stopped; {again}", exit_status=status)
    if failed:
        total = max(sweep.jobs, len(jobs))
        waiting = f", {total - len(jobs)} not started" if total > len(jobs) else ""
        if not waiting and failed == total and all(job.exit_status == 2 for job in failures):
            raise InputError(f"all {failed} jobs were refused, for the reasons above: change the command")
        raise RunFailed(f"{failed} of {total} jobs failed{waiting}; {again} with what is not finished")
    elsewhere = sum(job.status == "running" for job in jobs)
    if elsewhere and not status and all(job.status in ("finished", "running") for job in jobs):
        raise InUse(f"{elsewhere} of {len(jobs)} jobs are in use by other processes; {again}")
    if status or any(job.status != "finished" for job in jobs):
        raise RunFailed(f"not every job finished; {again}")
