"""A closed form or a solver over several processes (`torchrun`, `srun`): each rank reads a share of the rows.

All ranks run the same code on their shares (`shares`): the sums over rows are all-reduced, and the rest is done on
every rank. Rank 0 writes the run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from sigmapca_cli.composition.job import Job
from sigmapca_cli.data.cleaning.outliers import warnings_about
from sigmapca_cli.data.source import Source
from sigmapca_cli.evaluation.evaluate import evaluate_solution
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.execute import at_once, load_source
from sigmapca_cli.runner.lifecycle import finish_run, opened_run
from sigmapca_cli.runner.plan import Plan, make_plan, method_of
from sigmapca_cli.runner.ranks import Ranks
from sigmapca_cli.runner.solved import Facts
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.storage.find import shortened
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import WorkerInfo, blas
from sigmapca_cli.system.row_shards import shared
from sigmapca_cli.system.signals import Guard

log = logging.getLogger("sigmapca")


@contextlib.contextmanager
def sharing_rows(here: WorkerInfo) -> Iterator[Ranks]:
    """Join the other ranks, and read only this rank's share of the rows inside the block; only rank 0 prints."""
    ranks = Ranks(here)
    ranks.hint = lambda: "the same command again starts from the beginning"
    with ranks.until_the_end(), silence_others(ranks), shared(ranks):
        yield ranks


@contextlib.contextmanager
def silence_others(ranks: Ranks) -> Iterator[None]:
    """Let only rank 0 log and print."""
    if ranks.rank == 0:
        yield
        return
    log.setLevel(logging.CRITICAL)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def run(job: Job, here: WorkerInfo, rows: Any = None) -> Path:
    """Solve the run of a job as one of several ranks. Return on rank 0 only; the other ranks exit here.

    rows: as for `runner.run.run`. Raise InputError for what cannot be shared, and for ranks with different
    configurations or data; Stopped when a rank has died.
    """
    check_shared(job.cfg, here)
    with Guard() as guard:
        guard.again_after = 3.0  # the terminal sends Ctrl-C to all ranks, and torchrun sends it to them again
        with sharing_rows(here) as ranks:
            source = ranks.run_on_all(lambda: load_source(job.cfg, rows))
            ranks.run_on_all(lambda: check_same(ranks, job, source))
            check_shares(source, ranks.world)
            # The axes and the warnings are sums over all ranks; rank 0 finds them ready when it opens the run.
            plan = ranks.run_on_all(lambda: make_plan(job, source))
            for text in warnings_about(source):
                log.warning("%s", text)
            if ranks.rank:
                follow(plan, source, ranks)
            return lead(plan, source, ranks)


def check_shared(cfg: Config, here: WorkerInfo) -> None:
    """Raise InputError for a method that takes steps, and for one that needs all rows in one process."""
    if method_of(cfg) is not None:
        raise InputError(
            f"model={cfg.model.name} solver=stochastic: training by steps is not spread over {here.world} processes; "
            "use a solver, or sp.nn with DistributedDataParallel"
        )
    if cfg.model.objective in ("fastica", "picard"):
        raise InputError(
            f"model={cfg.model.name} is another library's, which needs all rows in one process, not shares of them in "
            f"{here.world}: start it without torchrun or srun, or use solver=newton"
        )


def check_same(ranks: Ranks, job: Job, source: Source) -> None:
    """Raise InputError for ranks that would solve different runs."""
    identities = ranks.all_gather((job.hash, source.hash))
    for what, index in (("another configuration", 0), ("other data", 1)):
        other = [rank for rank, identity in enumerate(identities) if identity[index] != identities[0][index]]
        if other:
            raise InputError(
                f"rank {other[0]}, {ranks.names[other[0]]}, has {what} than rank 0; "
                "start all of them with the same command and the same files"
            )


def check_shares(source: Source, world: int) -> None:
    """Raise InputError if there are fewer rows than ranks."""
    if source.n < world:
        raise InputError(
            f"{source.n} rows for {world} processes: start no more processes than there are rows"
        )


def lead(plan: Plan, source: Source, ranks: Ranks) -> Path:
    """Rank 0: open the run, tell the others its folder, solve, evaluate and write."""
    with contextlib.ExitStack() as stack:
        opened = ranks.run_on_all(lambda: stack.enter_context(opened_run(plan.job, source, plan)))
        if isinstance(opened, Path):
            ranks.broadcast_from_zero(None)
            return opened
        folder = opened.folder
        ranks.hint = lambda: how_to_repeat(folder)
        ranks.broadcast_from_zero(folder)
        opened.writer.attrs["processes"] = ranks.world
        log.info("%d processes: %s", ranks.world, ", ".join(ranks.names))
        start = time.monotonic()
        solution, facts = solve(opened.plan, source, ranks)
        log.info("solved in %.2f s", time.monotonic() - start)
        finish_run(opened, solution, facts)
        return folder


def follow(plan: Plan, source: Source, ranks: Ranks) -> NoReturn:
    """Every other rank: take part in the sums, and write nothing."""
    ranks.run_on_all(lambda: None)  # rank 0 opens the run
    folder = ranks.broadcast_from_zero(None)
    if folder is not None:
        ranks.hint = lambda: how_to_repeat(folder)
        solution, _ = solve(plan, source, ranks)
        evaluate_solution(solution.W, solution.sigma, solution.encoder, source)
    raise SystemExit(0)


def solve(plan: Plan, source: Source, ranks: Ranks) -> tuple[Solution, Facts]:
    """Return rank 0's solution on every rank, and the facts about how it was found."""
    with blas(plan.threads):
        found = ranks.run_on_all(lambda: at_once(plan, source))
    solution, facts = ranks.broadcast_from_zero(found)
    return solution, facts


def how_to_repeat(folder: Path) -> str:
    """Return how the run is made again: it keeps no checkpoint, because it takes few passes over the rows."""
    return (
        f"a solver keeps no checkpoint; sigmapca train --resume {shortened(folder)} starts from the beginning"
    )
