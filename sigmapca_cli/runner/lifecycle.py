"""The life of a run's folder: open it, new or from its checkpoint; finish it with a solution."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.composition.job import Job
from sigmapca_cli.data.cleaning.outliers import warn_about
from sigmapca_cli.data.source import Source
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.linalg.low_rank import LowRank
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner import checkpoints
from sigmapca_cli.runner.ending import order_words, summary, unconverged, verdict_words
from sigmapca_cli.runner.following import followed
from sigmapca_cli.runner.footprint import heavy_steps
from sigmapca_cli.runner.open_run import OpenRun, active_run, train_log
from sigmapca_cli.runner.plan import Plan, make_plan
from sigmapca_cli.runner.progress import say
from sigmapca_cli.runner.solved import Facts
from sigmapca_cli.settings.gone_keys import replaced
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.storage.claim import claim_folder, create_run_folder
from sigmapca_cli.storage.find import shortened
from sigmapca_cli.storage.format import STATUSES
from sigmapca_cli.storage.identity import find_by_hash
from sigmapca_cli.storage.lock import FolderLock
from sigmapca_cli.storage.provenance import torch_version
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.storage.sidecars import forget_failure, save_hydra
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.system.errors import InputError, RunFailed

log = logging.getLogger("sigmapca")


@contextlib.contextmanager
def opened_run(job: Job, source: Source, plan: Plan | None = None) -> Iterator[OpenRun | Path]:
    """Open a run for this job: new, or resumed from its checkpoint. `plan`: one that was made already.

    Yield an OpenRun, or the folder if that run has already finished. Raise InputError for a configuration that does
    not fit the data, or a folder that is in use.
    """
    existing = find_existing(job, source.hash)
    if existing is not None and checkpoints.status(existing) == "finished":
        # Before the covariance is computed: a sweep that is started again asks this for every job.
        with contextlib.suppress(OSError):  # the folder may be somebody else's
            leave_finished(existing)
        yield existing
        return
    plan = replace(plan, existing=existing) if plan else make_plan(job, source, existing)
    with locked_folder(plan) as folder:
        # Checked under the lock: another process may have finished the run meanwhile.
        if plan.existing and checkpoints.status(folder) == "finished":
            leave_finished(folder)
            yield folder
            return
        with begun(from_checkpoint(plan, folder, source), folder, source) as opened:
            yield opened


def leave_finished(folder: Path) -> None:
    """Say that a run has finished already, and remove what a kill just before the end left of it."""
    say(f"already finished: {shortened(folder)}")
    checkpoints.remove(folder)


@contextlib.contextmanager
def locked_folder(plan: Plan) -> Iterator[Path]:
    """Lock the folder of the run: the existing one, or a new one that no other process can have."""
    folder = plan.existing or new_folder(plan.job)
    active_run.set(folder)
    with FolderLock(folder):
        yield folder


def from_checkpoint(plan: Plan, folder: Path, source: Source) -> Plan:
    """Return the plan with the checkpoint of its existing run, if there is one, and with the threads it began with."""
    forget_failure(folder)
    if plan.existing is None:
        return plan
    saved = checkpoints.read(folder, plan.job.hash, source.hash)
    if saved is None:
        say(f"no checkpoint in {shortened(folder)}: starting from the beginning")
    before = attributes_before(folder) if saved else {}
    return plan.resumed(saved, int(before.get("threads") or 0))


@contextlib.contextmanager
def begun(plan: Plan, folder: Path, source: Source) -> Iterator[OpenRun]:
    """Open the log, the trackers and the file of a run in its locked folder."""
    job = plan.job
    with (
        prepared_torch(plan),
        train_log(folder),
        followed(job, folder, plan.saved.step if plan.saved else None) as attach,
        writer_of(plan, source, folder) as writer,
    ):
        attach(writer)
        log_start(folder, source, plan.cfg)
        save_hydra(folder, job.yaml, job.overrides)
        yield OpenRun(plan, source, folder, writer)


def prepared_torch(plan: Plan) -> contextlib.AbstractContextManager[None]:
    """Return a block in which torch has the threads and the precision of a run that uses it."""
    if not plan.uses_torch:
        return contextlib.nullcontext()
    from sigmapca_cli.training.device import torch_set

    return torch_set(plan.threads, plan.cfg.precision)


def writer_of(plan: Plan, source: Source, folder: Path) -> RunWriter:
    """Return the writer of `run.h5`, with everything that identifies the run."""
    job = plan.job
    return RunWriter(
        folder,
        model=job.cfg.model.name,
        config_yaml=job.yaml,
        overrides=job.overrides,
        seed=job.cfg.seed,
        device=str(plan.device),
        threads=plan.threads,
        config_hash=job.hash,
        data_hash=source.hash,
        attrs={
            "data": source.name,
            "n": source.n,
            "p": source.p,
            "k": plan.k,
            "a": str(job.cfg.a),
            **source.facts,
            **({"tags": ",".join(job.cfg.tags)} if job.cfg.tags else {}),
            **({"note": job.cfg.note} if job.cfg.note else {}),
        },
        resume_step=plan.saved.step if plan.saved else None,
    )


def log_start(folder: Path, source: Source, cfg: Config) -> None:
    """Log what the run is about, and what is unusual in its data."""
    log.info(
        "%s: %s, %d rows of %d features, k=%d", shortened(folder), source.name, source.n, source.p, cfg.k
    )
    warn_about(source, log)
    if words := source.approximate():
        log.warning(words)
    if words := heavy_steps(cfg, source.n, source.p):
        log.warning(words)
    if source.patch_shape is None and source.constant_features:
        log.warning("%d of %d features are constant: they take no part", source.constant_features, source.p)


def attributes_before(folder: Path) -> dict[str, Any]:
    """Return the attributes of a run that is to be resumed, {} if its file is damaged.

    Floating-point sums depend on its threads. Warn if a library has changed version since. Raise InputError if what
    made its steps is gone.
    """
    try:
        run = StoredRun.open(folder)
        before = run.attrs
    except InputError:
        return {}
    if gone := replaced(run.config, before):
        name = shortened(folder)
        raise InputError(f"{name}: {gone[0]}; it cannot go on: start it again with sigmapca rerun {name}")
    versions = [("torch", torch_version()), ("numpy", np.__version__)]
    for name, version in versions:
        earlier_version = before.get(f"{name}_version") or version
        if version and earlier_version != version:
            log.warning(
                "%s: began with %s %s, goes on with %s: the last bits may differ",
                shortened(folder),
                name,
                earlier_version,
                version,
            )
    return dict(before)


def finish_run(
    opened: OpenRun, solution: Solution, facts: Facts, attrs: dict[str, Any] | None = None
) -> None:
    """Evaluate the solution, write it, and print where it is and whether it has converged.

    `attrs` are further attributes of run.h5. Raise RunFailed if the run has not converged and strict=true.
    """
    cfg, writer, source = opened.plan.cfg, opened.writer, opened.source
    evaluation = {**evaluate_solution(solution.W, solution.sigma, solution.encoder, source), **facts}
    writer.finish(
        stored_arrays(solution, source),
        patch_shape=source.patch_shape,
        evaluation=evaluation,
        attrs={"converged": bool(facts["converged"]), **(attrs or {})},
    )
    checkpoints.remove(writer.folder)
    say(summary(writer.folder, evaluation))
    for words in filter(None, (order_words(facts), *verdict_words(cfg, facts))):
        say(f"  {words}")
    if not facts["converged"]:
        message = unconverged(opened.plan.job, opened.plan.cfg, source, facts)
        if cfg.strict:
            raise RunFailed(message)
        log.warning(message)


def stored_arrays(solution: Solution, source: Source) -> dict[str, Any]:
    """Return what `run.h5` stores of a solution, and of the data that is needed to apply it to new rows."""
    truth, T = source.truth, source.whitening
    factors = (T.left, T.right) if isinstance(T, LowRank) else (None, None)
    return {
        "filters": solution.W,
        "sigma": solution.sigma,
        "encoder": solution.encoder,
        "decoder": solution.decoder,
        "rotation": solution.rotation,
        "mean": source.mean,
        "scale": source.scale,
        "whitening": None if isinstance(T, LowRank) else T,
        "whitening_left": factors[0],
        "whitening_right": factors[1],
        "feature_name": source.names,
        "clip": source.clip,
        **({} if source.grid is None else source.grid.arrays()),
        "truth_filters": truth.filters if truth is not None and truth.filters is not None else None,
    }


def find_existing(job: Job, data_hash: str) -> Path | None:
    """Return the folder of the run of the same configuration and data, as `if_exists` asks, or None.

    Raise InputError with if_exists=fail, or if the folder asked for holds another run.
    """
    cfg = job.cfg
    if cfg.if_exists == "new" or (cfg.run_dir and not os.path.exists(cfg.run_dir)):
        return None
    if cfg.run_dir or job.hydra_folder:
        folder = Path(cfg.run_dir or str(job.hydra_folder))
        if not checkpoints.has_run(folder):
            return None
        checkpoints.check_identity(folder, job.hash, data_hash)
    else:
        wanted = ("finished",) if cfg.if_exists == "skip" else STATUSES
        found = [run for run in find_by_hash(cfg.outputs, job.hash, data_hash) if run.status in wanted]
        if not found:
            return None
        # A finished run need not be made again, even if a later attempt at it was interrupted.
        folder = next((run for run in reversed(found) if run.status == "finished"), found[-1]).folder
    if cfg.if_exists == "fail":
        raise InputError(f"{shortened(folder)} holds this configuration already (if_exists=fail)")
    return folder


def new_folder(job: Job) -> Path:
    """Return a new folder for the run of a job, which no other process can have."""
    cfg = job.cfg
    if cfg.run_dir:
        return claim_folder(cfg.run_dir)
    if job.hydra_folder is not None:
        return claim_folder(job.hydra_folder)
    return create_run_folder(cfg.outputs, cfg.model.name, job.hash)
