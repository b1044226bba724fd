"""One run from a composed configuration to a finished run directory."""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError, RunFailed, SigmapcaError
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.job import Job
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.processes import place
from sigmapca_cli.runner import checkpoints, choose
from sigmapca_cli.runner.ending import loose_pairs, summary, unconverged
from sigmapca_cli.runner.progress import say
from sigmapca_cli.runs.find import shortened
from sigmapca_cli.runs.format import STATUSES
from sigmapca_cli.runs.identity import find_by_hash
from sigmapca_cli.runs.lock import FolderLock
from sigmapca_cli.runs.provenance import torch_version
from sigmapca_cli.runs.read import Run
from sigmapca_cli.runs.sidecars import LogFile, forget_failure, save_hydra
from sigmapca_cli.runs.write import RunWriter, claim_folder, create_run_folder
from sigmapca_cli.signals import Guard
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.components import count_of
from sigmapca_cli.sources.owners import warn_about
from sigmapca_cli.sources.statistics import check_k, rank_of

log = logging.getLogger("sigmapca")

# The run that speaks, where several are open at once: only its train.log hears it. None: all of them.
speaking: ContextVar[Path | None] = ContextVar("speaking", default=None)


@dataclass
class Work:
    """A run that has begun: its folder is locked, its log and its file are open."""

    job: Job
    method: Any
    source: Source
    folder: Path
    device: Any
    threads: int
    saved: checkpoints.Saved | None
    writer: RunWriter


def run(job: Job) -> Path:
    """Prepare data and folder, train or solve, evaluate, write. Returns the run's folder."""
    here = place()
    if here is not None:
        from sigmapca_cli.runner import distributed

        return distributed.run(job, here)
    with Guard() as guard:
        source = choose.prepared(job.cfg)
        with opened(job, source) as begun:
            if isinstance(begun, Path):
                return begun
            began = time.monotonic()
            solved = choose.solve(begun, guard)
            log.info("solved in %.2f s", time.monotonic() - began)
            complete(begun, *solved)
            return begun.folder


@contextlib.contextmanager
def opened(job: Job, source: Source) -> Iterator[Work | Path]:
    """The run of a job on its data, begun or taken up again; or the folder of one that is finished already."""
    cfg = job.cfg
    method = choose.method_of(cfg)
    device = choose.device_of(cfg, method)
    existing = earlier(job, source.hash)
    if existing is not None and checkpoints.status(existing) == "finished":
        # Said before the covariance is worked out: a sweep taken up again asks this of every job.
        say(f"already finished: {shortened(existing)}")
        yield existing
        return
    check_size(cfg, source)
    folder, resuming = run_folder(job, existing)
    speaking.set(folder)
    with FolderLock(folder):
        # Looked at under the lock: another process may have finished it meanwhile.
        if resuming and checkpoints.status(folder) == "finished":
            say(f"already finished: {shortened(folder)}")
            checkpoints.remove(folder)  # of a run killed just before it did so itself
            yield folder
            return
        forget_failure(folder)
        saved = checkpoints.read(folder, job.hash, source.hash) if resuming else None
        if resuming and saved is None:
            say(f"no checkpoint in {shortened(folder)}: starting from the beginning")
        threads = choose.threads_of(cfg, method, source, began_with(folder) if saved else 0)
        if choose.wants_torch(cfg):
            from sigmapca_cli.training import device as torch_device

            torch_device.set_threads(threads)
            torch_device.set_precision(cfg.precision)
        with (
            train_log(folder),
            RunWriter(
                folder,
                model=cfg.model.name,
                config_yaml=job.yaml,
                overrides=job.overrides,
                seed=cfg.seed,
                device=str(device),
                threads=threads,
                config_hash=job.hash,
                data_hash=source.hash,
                attrs={
                    "data": source.name,
                    "n": source.n,
                    "p": source.p,
                    "k": cfg.k,
                    "a": str(cfg.a),
                    **source.facts,
                },
                resume_step=saved.step if saved else None,
            ) as writer,
        ):
            log.info(
                "%s: %s, %d rows of %d features, k=%d",
                shortened(folder),
                source.name,
                source.n,
                source.p,
                cfg.k,
            )
            warn_about(source, log)
            if source.patch_shape is None and source.constant_features:
                log.warning(
                    "%d of %d features are constant: they take no part", source.constant_features, source.p
                )
            save_hydra(folder, job.yaml, job.overrides)
            yield Work(job, method, source, folder, device, threads, saved, writer)


def began_with(folder: Path) -> int:
    """The threads a run began with: sums depend on them in the last bit. Other changes since are told."""
    try:
        before = Run.open(folder).attrs
    except InputError:
        return 0
    for name, version in (("torch", torch_version()), ("numpy", np.__version__)):
        earlier_version = before.get(f"{name}_version") or version
        if earlier_version != version:
            log.warning(
                "%s: began with %s %s, goes on with %s: the last bits may differ",
                shortened(folder),
                name,
                earlier_version,
                version,
            )
    return int(before.get("threads") or 0)


def complete(
    begun: Work, solution: Solution, facts: dict[str, Any], attrs: dict[str, Any] | None = None
) -> None:
    """Evaluate the solution and write it; say where it is and whether it converged. `attrs` are further notes."""
    cfg, writer, source = begun.job.cfg, begun.writer, begun.source
    evaluation = {**evaluate_solution(solution.W, solution.sigma, solution.encoder, source), **facts}
    writer.finish(
        arrays(solution, source),
        patch_shape=source.patch_shape,
        evaluation=evaluation,
        attrs={"converged": bool(facts["converged"]), **(attrs or {})},
    )
    checkpoints.remove(writer.folder)
    say(summary(writer.folder, evaluation))
    if facts["converged"] and (pairs := loose_pairs(cfg, facts)):
        held = "1 pair of components is" if pairs == 1 else f"{pairs} pairs of components are"
        say(f"  {held} not fixed by these rows: sigmapca evaluate last --certificate")
    if not facts["converged"]:
        message = unconverged(cfg, begun.method.kind, facts)
        if cfg.strict:
            raise RunFailed(message)
        log.warning(message)


def arrays(solution: Solution, source: Source) -> dict[str, Any]:
    """What `run.h5` keeps of a solution, and of the data needed to apply it to new rows."""
    truth = source.truth
    return {
        "filters": solution.W,
        "sigma": solution.sigma,
        "encoder": solution.encoder,
        "decoder": solution.decoder,
        "rotation": solution.rotation,
        "mean": source.mean,
        "scale": source.scale,
        "whitening": source.whitening,
        "feature_name": source.names,
        "clip": source.clip,
        "truth_filters": truth.filters if truth is not None and truth.filters is not None else None,
    }


def earlier(job: Job, data_hash: str) -> Path | None:
    """The run of the same configuration and data that `if_exists` speaks of, if there is one."""
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
        # What is finished need not be done again, even if a later attempt at it was interrupted.
        folder = next((run for run in reversed(found) if run.status == "finished"), found[-1]).folder
    if cfg.if_exists == "fail":
        raise InputError(f"{shortened(folder)} holds this configuration already (if_exists=fail)")
    return folder


def run_folder(job: Job, existing: Path | None) -> tuple[Path, bool]:
    """(folder, resuming): a new folder made exclusively, or the earlier one where that is asked."""
    cfg = job.cfg
    if existing is not None:
        return existing, True
    if cfg.run_dir:
        return claim_folder(cfg.run_dir), False
    if job.hydra_folder is not None:
        return claim_folder(job.hydra_folder), False
    return create_run_folder(cfg.outputs, cfg.model.name, job.hash), False


def check_size(cfg: Config, source: Source) -> None:
    """Make k a number; k components need at least k features, k rows, and data of that rank."""
    if isinstance(cfg.k, int) and cfg.k > min(source.n, source.p):
        check_k(cfg.k, source.n, source.p, min(source.n, source.p))
    rank = rank_of(source.principal_axes()[0])
    if rank == 0:
        raise InputError(f"data={source.name}: every feature is constant, there is nothing to learn")
    cfg.k = count_of(cfg.k, source.principal_axes()[0], source.n)
    check_k(cfg.k, source.n, source.p, rank)


@contextlib.contextmanager
def train_log(folder: Path) -> Iterator[None]:
    """Everything the `sigmapca` logger says goes to train.log, and why the run ended if it did not finish."""
    handler = LogFile(folder)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(lambda record: speaking.get() in (None, folder))
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    except BaseException as problem:
        # To the file only: whoever catches it tells the user.
        expected = isinstance(problem, SigmapcaError | SystemExit | KeyboardInterrupt)
        trace = None if expected else sys.exc_info()
        text = f"{type(problem).__name__}: {problem}"
        handler.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, text, (), trace))
        raise
    finally:
        log.removeHandler(handler)
        handler.close()
