"""`hydra/launcher=vectorized`, the default: jobs that differ only in a few numbers are trained side by side here.

The jobs of a multirun are composed, grouped by everything else, and each group is trained as one batched program;
every job gets the folder, files and results of an ordinary run. What cannot be grouped runs one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from omegaconf import open_dict

from sigmapca_cli.composition.sweep_loader import SweepLoader
from sigmapca_cli.data.config import kinds_of
from sigmapca_cli.launchers.adaptive import folder_of, result_of
from sigmapca_cli.launchers.failures import context_of
from sigmapca_cli.launchers.plugin import offer, target_of
from sigmapca_cli.storage.find import summarise_folder
from sigmapca_cli.storage.format import CHECKPOINT_FILE, FINISHED, RUN_FILE
from sigmapca_cli.system.errors import SigmapcaError

MANY = 20
"""Jobs of a sweep whose composition is announced: it takes a while."""


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
        from sigmapca_cli.system.signals import Guard

        setup_globals()
        if len(job_overrides) >= MANY:
            print(f"composing {len(job_overrides)} jobs", flush=True)
        composed = [self.compose(list(o), initial_job_idx + i) for i, o in enumerate(job_overrides)]
        groups, alone = self.grouped(composed)
        self.known: tuple[str, Any] = ("", None)  # the data of the last group: most sweeps have but one
        for members in groups:
            with Guard() as guard:
                self.run_group(members, guard)
        self.known = ("", None)
        for number in alone:
            run_job(
                hydra_context=self.context,
                task_function=self.task,
                config=composed[number],
                job_dir_key="hydra.sweep.dir",
                job_subdir_key="hydra.sweep.subdir",
            )
        return [JobReturn(_return_value=result_of(config), status=JobStatus.COMPLETED) for config in composed]

    def compose(self, overrides: list[str], number: int) -> Any:
        """The whole configuration of one job, Hydra's own part included."""
        config = self.context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(number)
            config.hydra.job.num = number
            config.hydra.runtime.output_dir = str(folder_of(config).absolute())
        return config

    def grouped(self, composed: list[Any]) -> tuple[list[list[Any]], list[int]]:
        """Groups of (number, job, folder) that can be trained side by side, and the numbers of the others."""
        from sigmapca_cli.composition.job import job_of
        from sigmapca_cli.runner.grouped import group_key
        from sigmapca_cli.runner.plan import method_of

        if context_of(self.task).fail_fast:
            return [], list(range(len(composed)))  # in a group the others would have gone on
        found: dict[str, list[Any]] = {}
        alone, folders = [], set()
        finished = 0
        for number, config in enumerate(composed):
            key, folder = None, folder_of(config)
            if folder in folders:
                continue  # a search may ask twice for the same job
            folders.add(folder)
            try:
                job = job_of(config)
                if is_done(job, folder):
                    finished += 1
                    continue
                key = group_key(job, method_of(job.cfg))
            except SigmapcaError:
                pass  # it fails in its own turn, where that is announced and noted
            if key is None:
                alone.append(number)
            else:
                found.setdefault(key, []).append((number, job, folder))
        if finished:
            print(f"already finished: {finished} of {len(composed)} jobs", flush=True)
        groups: list[list[Any]] = []
        for members in found.values():
            from sigmapca_cli.runner.grouped import chunks_of

            groups += [list(part) for part in chunks_of(members, members[0][1].cfg.k)]
        return groups, sorted(alone)

    def run_group(self, members: list[Any], guard: Any) -> None:
        """Train one group, then announce and note the failures in it."""
        from sigmapca_cli.runner.grouped import train_together
        from sigmapca_cli.storage.lock import InUse
        from sigmapca_cli.system.errors import Signalled, Stopped

        context = context_of(self.task)
        try:
            source = self.source_of(members[0][1])
            ended = train_together([job for _, job, _ in members], source, guard)
        except (Stopped, Signalled) as problem:
            raise SystemExit(problem.exit_status) from None
        except SigmapcaError as problem:
            for _, job, folder in members:
                context.failed(folder.name, folder, problem, job.overrides)
            return
        for (_, job, folder), member in zip(members, ended, strict=True):
            if isinstance(member.problem, InUse):
                context.announce(folder.name, str(member.problem))  # the folder is another process's
            elif isinstance(member.problem, Exception):
                context.failed(folder.name, folder, member.problem, job.overrides)
            elif job.cfg.objective:
                self.measure(job, folder)

    def measure(self, job: Any, folder: Path) -> None:
        """Measure what a search is led by, where the run has not stored it; a failure is announced and noted."""
        from sigmapca_cli.runner.objective import measure
        from sigmapca_cli.system.errors import Signalled, Stopped

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


def is_done(job: Any, folder: Path) -> bool:
    """Whether the run of a job has finished, on made rows: they are those of its configuration, and not made to ask.

    Rows of files may have changed, and a search may lack what it is led by: these are looked at in their turn.
    """
    if (
        job.cfg.if_exists not in ("resume", "skip")
        or job.cfg.data.name not in kinds_of("made")
        or job.cfg.objective
    ):
        return False
    if not (folder / RUN_FILE).exists() or (folder / CHECKPOINT_FILE).exists():
        return False
    attrs = summarise_folder(folder).attrs
    return bool(attrs.get("status") == FINISHED and attrs.get("config_hash") == job.hash)
