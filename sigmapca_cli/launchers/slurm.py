"""`hydra/launcher=slurm`: a sweep as one SLURM job array, over submitit.

The jobs are submitted at once, so that nothing is lost when the terminal goes away; then the launcher watches, or
leaves (`detach=true`). It watches the job folders and `squeue`, not `sacct`: on a cluster without accounting
submitit's own watcher prints a warning at every look, and waits for ever for a job that was killed.
"""

import json
import logging
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.types import HydraContext

from sigmapca_cli.composition.job import job_of
from sigmapca_cli.composition.sweep_loader import SweepLoader, folder_of
from sigmapca_cli.launchers import adaptive
from sigmapca_cli.launchers.adaptive import result_of
from sigmapca_cli.launchers.failures import SweepContext, context_of
from sigmapca_cli.launchers.outcome import is_done, outcomes
from sigmapca_cli.launchers.plugin import offer, target_of
from sigmapca_cli.settings.schema import register as register_config
from sigmapca_cli.settings.schema import words_of
from sigmapca_cli.system.atomic import replace_file
from sigmapca_cli.system.errors import InputError, RunFailed, SigmapcaError
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT, read_bytes

try:
    from hydra_plugins.hydra_submitit_launcher.config import SlurmQueueConf
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher
except ImportError:
    raise InputError("hydra/launcher=slurm needs submitit: pip install hydra-submitit-launcher") from None

LONGEST_PAUSE = 10.0  # seconds between two looks at the queue
SUBMITTED = ".submitted.json"  # in the sweep's folder: job number -> SLURM's id
UNKNOWN: frozenset[str] = frozenset({"?"})


@dataclass
class SlurmConf(SlurmQueueConf):
    """submitit's settings and ours."""

    _target_: str = target_of("SlurmLauncher")
    detach: bool = False  # submit, print the job ids, and return


def register() -> None:
    """Make the settings known to Hydra, and this launcher the one that they name."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(group="hydra/launcher", name="sigmapca_slurm", node=SlurmConf)
    offer("SlurmLauncher", Launcher)


class Launcher(SlurmLauncher):
    """Submits all jobs as one array and watches it."""

    def __init__(self, detach: bool = False, **params: Any) -> None:
        super().__init__(**params)
        self.detach = detach

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Hydra's hand-over; the sweeper has the same context, and so composes by the same loader."""
        hydra_context.config_loader = SweepLoader(hydra_context.config_loader)
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def __reduce__(self) -> Any:
        """Pickle by this module's name: the class goes by a name that a job's process does not know.

        A job composes its configuration by Hydra's own loader.
        """
        assert self.hydra_context is not None
        own: Any = self.hydra_context.config_loader
        context = HydraContext(config_loader=own.loader, callbacks=self.hydra_context.callbacks)
        return restored, ({**self.__dict__, "hydra_context": context},)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Submit what is neither finished nor in the queue already; then wait for the end of all unless detached."""
        from hydra.core.utils import JobReturn, JobStatus

        assert self.config is not None
        sweep = Path(str(self.config.hydra.sweep.dir))
        numbered = [(initial_job_idx + i, list(overrides)) for i, overrides in enumerate(job_overrides)]
        queued = self.cluster()
        before = {number: job for number, job in submitted(sweep).items() if job in queued}
        waiting = {number: job for number, _ in numbered if (job := before.get(number))}
        left = [(n, o) for n, o in numbered if n not in waiting and not self.finished(n, o)]
        done = len(numbered) - len(waiting) - len(left)
        if done or waiting:
            print(f"not submitted again: {done} finished, {len(waiting)} in the queue", flush=True)
        new: dict[int, str] = {}
        if left:
            for part in parts(left, largest_array()):
                new |= self.submit(part, sweep)
            waiting |= new
        if not self.detach and waiting:
            arrays = sorted({job.split("_")[0] for job in waiting.values()})
            # It ends only what it has submitted itself: the note of earlier jobs is a file that can be forged.
            ours = sorted({job.split("_")[0] for job in new.values()})
            try:
                watch(set(waiting.values()), ours, sweep, context_of(self.task_function))
            except KeyboardInterrupt:
                print(f"\nthe jobs go on; `scancel {' '.join(arrays)}` ends them", flush=True)
                raise
        asked = words_of(self.config.objective)
        results = [result_of(folder_of(self.compose(n, o)), asked) if asked else None for n, o in numbered]
        return [JobReturn(_return_value=result, status=JobStatus.COMPLETED) for result in results]

    def compose(self, number: int, overrides: list[str]) -> Any:
        """Return the whole configuration of one job, Hydra's own part included."""
        assert self.hydra_context is not None
        loader: Any = self.hydra_context.config_loader
        return loader.job(self.config, overrides, number)

    def finished(self, number: int, overrides: list[str]) -> bool:
        """Whether its folder holds the finished run of just this configuration; its data are not looked at."""
        config = self.compose(number, overrides)
        try:
            return is_done(job_of(config), folder_of(config))
        except SigmapcaError:
            return False  # the job itself says what is wrong with it

    def submit(self, numbered: list[tuple[int, list[str]]], sweep: Path) -> dict[int, str]:
        """Hand the jobs to submitit as one array, note and print their ids: by the number of the job."""
        import submitit
        from hydra.core.singleton import Singleton

        folder = str(self.params["submitit_folder"])
        executor = self.executor()
        state = Singleton.get_state()
        arguments = [(o, "hydra.sweep.dir", n, f"job_id_for_{n}", state) for n, o in numbered]
        try:
            jobs = executor.map_array(self, *zip(*arguments, strict=True))
        except (submitit.core.utils.FailedJobError, subprocess.CalledProcessError) as problem:
            raise RunFailed(f"SLURM did not take the jobs: {' '.join(str(problem).split())[-300:]}") from None
        ids = {number: str(job.job_id) for (number, _), job in zip(numbered, jobs, strict=True)}
        replace_file(sweep / SUBMITTED, json.dumps({**submitted(sweep), **ids}).encode())
        first = str(jobs[0].job_id)
        logs = Path(folder.replace("%j", first)).parent
        print(f"SLURM job {first.split('_')[0]}: {len(jobs)} jobs, logs in {logs}", flush=True)
        print(f"job ids: {' '.join(ids.values())}", flush=True)
        return ids

    def cluster(self) -> frozenset[str]:
        """The jobs in the queue; InputError where there is no SLURM, before sbatch says so in lines of its own."""
        queued = in_queue()
        if queued is UNKNOWN or shutil.which("sbatch") is None:
            raise InputError(
                "hydra/launcher=slurm: no SLURM answers here (see what `squeue` says); start the sweep on a machine of "
                "the cluster, or use hydra/launcher=joblib"
            )
        return queued

    def executor(self) -> Any:
        """submitit's executor with our settings."""
        import submitit

        params = dict(self.params)
        logging.getLogger("submitit").setLevel(logging.ERROR)
        executor = submitit.AutoExecutor(
            cluster="slurm",
            folder=params.pop("submitit_folder"),
            slurm_max_num_timeout=params.pop("max_num_timeout"),
        )
        common = (
            "timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes", "name",
        )  # fmt: skip
        named = (*common, "stderr_to_stdout")
        executor.update_parameters(
            **{key if key in named else f"slurm_{key}": value for key, value in params.items()}
        )
        return executor

    def __call__(self, *arguments: Any) -> Any:
        """The job itself, on a cluster's node."""
        from sigmapca_cli.system.messages import show_warnings

        register_config()
        register()
        adaptive.register()
        show_warnings()
        return super().__call__(*arguments)


def largest_array() -> int:
    """Return how many jobs SLURM takes as one array (MaxArraySize); 1001, its default, where it does not say."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=PATIENCE
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return 1001
    found = re.search(r"MaxArraySize\s*=\s*(\d+)", done.stdout)
    return max(1, int(found[1])) if found else 1001


def parts(jobs: list[Any], size: int) -> list[list[Any]]:
    """Return the jobs in lists of at most `size`."""
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


def restored(state: dict[str, Any]) -> Launcher:
    """Return the launcher that was pickled with this state."""
    launcher = object.__new__(Launcher)
    launcher.__dict__.update(state)
    return launcher


def submitted(sweep: Path) -> dict[int, str]:
    """The SLURM job of every job of the sweep, as it was submitted last."""
    try:
        noted = json.loads(read_bytes(sweep / SUBMITTED, 64 * NOTE_LIMIT))
        return {int(number): str(job) for number, job in noted.items()}
    except (OSError, ValueError, AttributeError, RecursionError, InputError):
        return {}


def watch(jobs: set[str], ours: list[str], sweep: Path, context: SweepContext) -> None:
    """Wait until none of the jobs is left in the queue; announce each failure when it is noted."""
    began = time.time()
    pause = 0.5
    while True:
        queued = in_queue()
        for job in outcomes(sweep):
            new = job.status == "failed" and job.number not in context.told
            if new and noted_since(sweep / job.number, began):
                context.announce(job.number, job.reason)
                if context.fail_fast:
                    if ours:
                        subprocess.run(["scancel", *ours], check=False)
                    raise SystemExit(1)
        if queued.isdisjoint(jobs) and queued is not UNKNOWN:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


def noted_since(folder: Path, began: float) -> bool:
    """Whether the failure is of this submission, not of an earlier one."""
    from sigmapca_cli.storage.format import ERROR_FILE

    try:
        return (folder / ERROR_FILE).stat().st_mtime >= began - 1
    except OSError:
        return True


PATIENCE = 15  # seconds


def in_queue() -> frozenset[str]:
    """The ids of this user's jobs that wait or run; UNKNOWN while SLURM does not answer."""
    command = ["squeue", "--noheader", "--array", "--me", "--format", "%i"]
    try:
        # Where no controller answers squeue itself tries for a minute.
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return UNKNOWN
    return UNKNOWN if done.returncode else frozenset(done.stdout.split())
