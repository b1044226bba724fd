"""`hydra/launcher=vectorized`, the default: jobs that differ only in a few numbers are trained side by side here.

The jobs of a multirun are composed, grouped by everything else, and each group is trained as one batched program;
every job gets the folder, files and results of an ordinary run. What cannot be grouped runs one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher

from sigmapca_cli.composition.sweep_loader import SweepLoader
from sigmapca_cli.launchers.adaptive import result_of
from sigmapca_cli.launchers.failures import context_of
from sigmapca_cli.launchers.plugin import offer, target_of
from sigmapca_cli.system.errors import SigmapcaError, Signalled, Stopped

if TYPE_CHECKING:
    from sigmapca_cli.launchers.coming import Coming

MANY = 20
"""Jobs of a sweep whose number is said before the first begins."""


@dataclass
class VectorizedConf:
    """The node that `hydra/launcher=vectorized` selects."""

    _target_: str = target_of("VectorizedLauncher")


def register() -> None:
    """Make the launcher known to Hydra."""
    ConfigStore.instance().store(group="hydra/launcher", name="vectorized", node=VectorizedConf)
    offer("VectorizedLauncher", VectorizedLauncher)


class VectorizedLauncher(Launcher):
    """Runs what can be grouped side by side, the rest one after the other."""

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Hydra's hand-over; the sweeper has the same context, and so composes by the same loader."""
        hydra_context.config_loader = SweepLoader(hydra_context.config_loader)
        self.context, self.task, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs; failures are noted in their folders, as for every launcher."""
        from sigmapca_cli.launchers.coming import Queue
        from sigmapca_cli.system.signals import Guard

        setup_globals()
        numbered = [(initial_job_idx + i, list(overrides)) for i, overrides in enumerate(job_overrides)]
        if len(numbered) >= MANY:
            print(f"{len(numbered)} jobs; those that have finished are left out", flush=True)
        # In a group the others would have gone on after the first failure.
        alone = context_of(self.task).fail_fast
        queue = Queue(self.context.config_loader, self.config, numbered, alone=alone)
        self.known: tuple[str, Any] = ("", None)  # the data of the last group: most sweeps have but one
        later: list[Coming] = []
        for members in queue.groups():
            queue.tell()
            if members[0].key is not None:
                with Guard() as guard:
                    self.run_group(members, guard)
            elif self.known[1] is None:
                self.run_alone(members[0])
            else:
                later += members  # it reads its own data, for which there may be no room now
        queue.tell()
        self.known = ("", None)
        for member in later:
            self.run_alone(member)
        results = [result_of(*queue.asked[number]) for number, _ in numbered]
        return [JobReturn(_return_value=result, status=JobStatus.COMPLETED) for result in results]

    def run_alone(self, member: Coming) -> None:
        """Run one job as Hydra's own launcher does."""
        config = self.context.config_loader.job(self.config, member.overrides, member.number)
        run_job(
            hydra_context=self.context,
            task_function=self.task,
            config=copy.deepcopy(config),
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )

    def run_group(self, members: list[Coming], guard: Any) -> None:
        """Train one group, then announce and note the failures in it."""
        from sigmapca_cli.runner.grouped import train_together
        from sigmapca_cli.storage.lock import InUse

        context = context_of(self.task)
        jobs = {member.folder: member.job for member in members if member.job is not None}
        try:
            ended = train_together(list(jobs.values()), self.source_of(members[0].job), guard)
        except (Stopped, Signalled) as problem:
            raise SystemExit(problem.exit_status) from None
        except SigmapcaError as problem:
            for folder, job in jobs.items():
                context.failed(folder.name, folder, problem, job.overrides)
            return
        for (folder, job), member in zip(jobs.items(), ended, strict=True):
            if isinstance(member.problem, InUse):
                context.announce(folder.name, str(member.problem))  # the folder is another process's
            elif isinstance(member.problem, Exception):
                context.failed(folder.name, folder, member.problem, job.overrides)
            elif job.cfg.objective:
                self.measure(job, folder)

    def measure(self, job: Any, folder: Path) -> None:
        """Measure what a search is led by, where the run has not stored it; a failure is announced and noted."""
        from sigmapca_cli.runner.objective import measure

        try:
            measure(job, folder)
        except (Stopped, Signalled) as problem:
            raise SystemExit(problem.exit_status) from None
        except SigmapcaError as problem:
            context_of(self.task).failed(folder.name, folder, problem, job.overrides)

    def source_of(self, job: Any) -> Any:
        """The data of a job, kept for the next group where that has the same."""
        from sigmapca_cli.data import build
        from sigmapca_cli.storage.identity import config_hash

        key = config_hash({"data": job.plain["data"]}, ())
        if key != self.known[0]:
            self.known = ("", None)  # let go of the last first: both together may not fit
            self.known = (key, build(job.cfg.data))
        return self.known[1]
