"""`hydra/launcher=slurm`: a sweep as one SLURM job array, over submitit.

The jobs are submitted at once, so that nothing is lost when the terminal goes away; then the launcher watches, or
leaves (`detach=true`). It watches the job folders and `squeue`, not `sacct`: on a cluster without accounting
submitit's own watcher prints a warning at every look, and waits for ever for a job that was killed.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError, RunFailed

try:
    from hydra_plugins.hydra_submitit_launcher.config import SlurmQueueConf
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher
except ImportError:
    raise InputError(
        "hydra/launcher=slurm needs the extra `cluster`: pip install 'sigmapca-cli[cluster]'"
    ) from None


@dataclass
class SlurmConf(SlurmQueueConf):
    """submitit's settings and ours."""

    detach: bool = False  # submit, print the job ids, and return


def register() -> None:
    """Make the settings known to Hydra, and this launcher the one that they name.

    Hydra instantiates launchers from the package `hydra_plugins` only; so ours stands in for submitit's, from
    which it is derived.
    """
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    ConfigStore.instance().store(group="hydra/launcher", name="sigmapca_slurm", node=SlurmConf)
    submitits = f"{SlurmLauncher.__module__}.{SlurmLauncher.__name__}"
    Plugins.instance().class_name_to_class[submitits] = Launcher


class Launcher(SlurmLauncher):
    """Submits all jobs as one array and watches it."""

    def __init__(self, detach: bool = False, **params: Any) -> None:
        super().__init__(**params)
        self.detach = detach

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Submit, then wait for the end of all jobs unless detached."""
        from hydra.core.utils import JobReturn, JobStatus

        assert self.config is not None
        sweep = Path(str(self.config.hydra.sweep.dir))
        jobs = self.submit(job_overrides, initial_job_idx)
        array = str(jobs[0].job_id).split("_")[0]
        logs = Path(str(self.params["submitit_folder"]).replace("%j", str(jobs[0].job_id)))
        print(f"SLURM job {array}: {len(jobs)} jobs, logs in {logs.parent}", flush=True)
        print(f"job ids: {' '.join(str(job.job_id) for job in jobs)}", flush=True)
        if not self.detach:
            try:
                watch(array, sweep)
            except KeyboardInterrupt:
                print(f"\nthe jobs go on; `scancel {array}` ends them", flush=True)
                raise
        return [JobReturn(_return_value=None, status=JobStatus.COMPLETED) for _ in jobs]

    def submit(self, job_overrides: Sequence[Sequence[str]], first: int) -> list[Any]:
        """Hand the jobs to submitit as one array."""
        import submitit
        from hydra.core.singleton import Singleton

        params = dict(self.params)
        logging.getLogger("submitit").setLevel(logging.ERROR)
        executor = submitit.AutoExecutor(
            cluster="slurm",
            folder=params.pop("submitit_folder"),
            slurm_max_num_timeout=params.pop("max_num_timeout"),
        )
        common = (
            "timeout_min",
            "cpus_per_task",
            "gpus_per_node",
            "tasks_per_node",
            "mem_gb",
            "nodes",
            "name",
        )
        named = (*common, "stderr_to_stdout")
        executor.update_parameters(
            **{key if key in named else f"slurm_{key}": value for key, value in params.items()}
        )
        state = Singleton.get_state()
        arguments = [
            (list(overrides), "hydra.sweep.dir", first + index, f"job_id_for_{first + index}", state)
            for index, overrides in enumerate(job_overrides)
        ]
        try:
            return executor.map_array(self, *zip(*arguments, strict=True))
        except (submitit.core.utils.FailedJobError, subprocess.CalledProcessError) as problem:
            raise RunFailed(f"SLURM did not take the jobs: {' '.join(str(problem).split())[-300:]}") from None

    def __call__(self, *arguments: Any) -> Any:
        """The job itself, on a cluster's node."""
        from sigmapca_cli.cli import show_warnings
        from sigmapca_cli.config import register as register_config

        register_config()
        register()
        show_warnings()
        return super().__call__(*arguments)


def watch(array: str, sweep: Path, longest: float = 10.0) -> None:
    """Wait until no job of the array is left in the queue; announce each failure when it is noted."""
    from sigmapca_cli.launchers.outcome import outcomes

    began = time.time()
    told: set[str] = set()
    pause = 0.5
    while True:
        left = in_queue(array)
        for job in outcomes(sweep):
            if job.status == "failed" and job.number not in told and noted_since(sweep / job.number, began):
                told.add(job.number)
                print(f"sigmapca: job {job.number}: {job.reason}", file=sys.stderr, flush=True)
                if os.environ.get("SIGMAPCA_FAIL_FAST"):
                    subprocess.run(["scancel", array], check=False)
                    raise SystemExit(1)
        if not left:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, longest)


def noted_since(folder: Path, began: float) -> bool:
    """Whether the failure is of this submission, not of an earlier one."""
    from sigmapca_cli.runs.format import ERROR_FILE

    try:
        return (folder / ERROR_FILE).stat().st_mtime >= began - 1
    except OSError:
        return True


def in_queue(array: str) -> bool:
    """Whether SLURM still has jobs of the array that wait or run; while it does not answer, that is assumed."""
    done = subprocess.run(
        ["squeue", "--noheader", "--array", "--jobs", array, "--format", "%T"], capture_output=True, text=True
    )
    if done.returncode:
        return "Invalid job id" not in done.stderr  # forgotten: it ended a while ago
    return bool(done.stdout.strip())
