"""A run's trackers (`tracker=…`): opened with the run, told what the writer has stored, closed when it has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from sigmapca_cli.composition.job import Job
from sigmapca_cli.storage.folders import outputs_root
from sigmapca_cli.storage.format import METRICS_FILE
from sigmapca_cli.storage.metrics import latest
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.tracking.protocols import Tracked, flat

Attach = Callable[[RunWriter], None]


@contextlib.contextmanager
def followed(job: Job, folder: Path, resume_step: int | None) -> Iterator[Attach]:
    """Yield a function that lets the trackers follow a writer; close them after the writer, with the run's last state.

    Without trackers nothing is loaded.
    """
    if not job.cfg.tracker:
        yield lambda writer: None
        return
    from sigmapca_cli.tracking.hub import Hub

    seen = latest(folder / METRICS_FILE)[0]  # before the writer drops what the checkpoint does not contain
    hub, writers = Hub(), []

    def attach(writer: RunWriter) -> None:
        writers.append(writer)
        hub.begin(job.cfg.tracker, tracked(job, writer, resume_step, -1 if seen is None else seen))
        writer.listener = hub.log

    try:
        yield attach
    finally:
        for writer in writers:
            hub.finish(str(writer.attrs["status"]), writer.evaluation)


def tracked(job: Job, writer: RunWriter, resume_step: int | None, seen: int) -> Tracked:
    """Return what trackers are told about the run of a job."""
    from sigmapca_cli.tracking.hub import key_of

    folder, attrs = writer.folder, writer.attrs
    in_sweep = job.hydra_folder is not None
    return Tracked(
        name=f"{folder.parent.name}/{folder.name}" if in_sweep else folder.name,
        folder=folder.absolute(),
        key=key_of(attrs["config_hash"], attrs["data_hash"], attrs["created"], folder),
        group=folder.parent.name if in_sweep else "",
        config=flat(job.plain),
        tags=job.cfg.tags,
        note=job.cfg.note or "",
        resumed=resume_step,
        seen=seen,
        outputs=outputs_root(job.cfg.outputs),
    )
