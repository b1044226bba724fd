"""A job from the configuration that a run stored: what `--resume` and `rerun` go by, whatever `conf/` holds by now."""

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.job import Job
    from sigmapca_cli.runs.read import Run


MOVED = "data.path"


def stored_job(run: "Run", changes: list[str]) -> "Job":
    """The job of a run, with some keys changed that do not change what it computes.

    `data.path` may differ too, for data that have moved: the hash of the data says whether they are the same.
    Raises InputError for any other key, and for a run whose file holds no configuration.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from sigmapca_cli.config import Config
    from sigmapca_cli.gone_keys import without_gone
    from sigmapca_cli.identity_keys import VOLATILE
    from sigmapca_cli.job import Job
    from sigmapca_cli.sources.config import as_stored

    if not run.config:
        raise InputError(f"{run.path}: holds no configuration to go by")
    for change in changes:
        key, sign, _ = change.partition("=")
        if not sign or (key != MOVED and key.split(".")[0] not in VOLATILE):
            raise InputError(
                f"{change}: the run keeps its configuration; only {', '.join(VOLATILE)} and {MOVED} may differ"
            )
    moved = [change.partition("=")[2] for change in changes if change.startswith(f"{MOVED}=")]
    changes = [change for change in changes if not change.startswith(f"{MOVED}=")]
    kept = {**without_gone(run.config), "data": as_stored(run.config.get("data", {}))}
    try:
        composed: Any = OmegaConf.merge(
            OmegaConf.structured(Config), OmegaConf.create(kept), OmegaConf.from_dotlist(changes)
        )
        cfg: Any = OmegaConf.to_object(composed)
    except OmegaConfBaseException as problem:
        raise InputError(
            f"{run.path}: its configuration does not fit this version ({str(problem).splitlines()[0]})"
        ) from None
    if moved:
        # Only where they are read from: the stored path stays a part of what the run is.
        cfg.data.path = moved[-1]
    path = cfg.data.path
    if isinstance(path, str) and not glob.has_magic(path) and not Path(path).expanduser().exists():
        raise InputError(f"{path}: no such file or folder; if the run's data have moved, add {MOVED}=PLACE")
    plain: Any = OmegaConf.to_container(composed, resolve=True)
    return Job(cfg, OmegaConf.to_yaml(composed, resolve=True), plain, run.overrides, None)


def resume(name: str, changes: list[str]) -> None:
    """`sigmapca train --resume RUN`."""
    from sigmapca_cli.runs.find import resolve
    from sigmapca_cli.runs.read import Run

    folder = resolve(name)
    job = stored_job(Run.open(folder), changes)
    job.cfg.run_dir, job.cfg.if_exists = str(folder), "resume"
    from sigmapca_cli.runner.run import run

    run(job)
