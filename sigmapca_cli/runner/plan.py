"""The plan of a run: its way to a solution, its method, its k, its device, its threads; decided here, and nowhere else.

The import of torch takes longer than most problems take to be solved. Only training by steps needs it, and not even the
main method on a CPU.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  torch must not be the first to import it while a process ends
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.job import Job
from sigmapca_cli.data.moments.accumulate import check_k
from sigmapca_cli.data.moments.implicit import WIDE
from sigmapca_cli.data.n_components import count_for
from sigmapca_cli.data.source import Source
from sigmapca_cli.methods.numpy_main import NumpyMain, fast_path_applies
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner import solved
from sigmapca_cli.runner.checkpoints import Saved
from sigmapca_cli.runner.footprint import check_memory
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import Way, way_of
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.processes import available_threads, distributed_env, may_have_gpu, pick_threads
from sigmapca_cli.training.protocols import TrainedMethod

FIXED = ("ordering.name", "regularisers")
"""What a way that solves at once looks at, to refuse all values but one."""
SOLVER = (
    *FIXED,
    *("sigma.name", "nonlinearity.name", "nonlinearity.derivative"),
    *("solver.name", "solver.tol", "solver.max_iterations", "solver.starts", "solver.clip", "solver.lam"),
    *("init", "init_file"),
)


@dataclass(frozen=True)
class Solver:
    """A way that solves at once, as one row of a table.

    keys: keys and groups that it reads, of those that not every way does. refusal: why it cannot take a configuration,
    or None. solve: from a configuration, whose k is a number, and a source to the solution and the facts about how it
    was found. starts: the values of `init` that make a difference.
    """

    keys: tuple[str, ...]
    refusal: Callable[[Config], str | None]
    solve: Callable[[Config, Source], tuple[Solution, solved.Facts]]
    starts: tuple[str, ...] = ()


SOLVERS = {
    Way.DIRECT: Solver(
        (*FIXED, "model.fun", "model.max_iter", "model.tolerance", "model.varimax"),
        solved.refusal_of_direct,
        solved.solve_direct,
    ),
    Way.NEWTON: Solver(
        (*SOLVER, "a", "nonlinearity", "solver.polish", "solver.tau", "solver.a_from"),
        solved.refusal_of_newton,
        solved.solve_newton,
        ("pca", "file", "moments", "independence"),
    ),
    Way.MOMENTS: Solver(
        SOLVER, solved.refusal_without_a, solved.solve_moments, ("pca", "file", "orthogonal")
    ),
    Way.INDEPENDENCE: Solver(
        (*SOLVER, "solver.tau"),
        solved.refusal_without_a,
        solved.solve_independence,
        ("pca", "file", "orthogonal", "moments"),
    ),
}
"""Every way but training by steps; to add a solver is to add its word to `ways.Way` and its row here."""

STEPS = (
    *("a", "nonlinearity", "sigma", "constraint", "ordering", "regularisers", "optimizer", "checkpoint"),
    *("epochs", "steps", "max_steps", "batch_size", "shuffle_buffer", "lr", "init", "init_file", "dtype"),
    *("precision", "log_every", "keep", "rescale", "tol", "ending", "stop"),
    *("solver.name", "solver.a_from"),
    # of init=moments and init=independence
    *("solver.lam", "solver.tau", "solver.starts", "solver.clip"),
)
"""Keys and groups that training by steps reads, of those that not every way does."""


def is_read(way: Way, key: str) -> bool:
    """Return whether a way reads a dotted key. A key that stands in no way's row is read by every way."""
    rows = {**{solver: row.keys for solver, row in SOLVERS.items()}, Way.STEPS: STEPS}

    def names(row: tuple[str, ...]) -> bool:
        return key in row or key.split(".")[0] in row

    return names(rows[way]) or not any(map(names, rows.values()))


@dataclass(frozen=True)
class Plan:
    """All that is decided of a run before it begins.

    cfg: the job's configuration with k as a number; the job's own stays as it was given. method: what takes the steps,
    None for a way that takes none. threads: those of its products. existing: the folder of the same run, to be gone on
    with; saved: its checkpoint.
    """

    job: Job
    way: Way
    cfg: Config
    method: TrainedMethod | None
    device: Any
    threads: int
    existing: Path | None = None
    saved: Saved | None = None

    @property
    def k(self) -> int:
        """The number of components."""
        return int(self.cfg.k)

    @property
    def uses_torch(self) -> bool:
        """Whether torch makes the steps."""
        return self.method is not None and not isinstance(self.method, NumpyMain)

    def resumed(self, saved: Saved | None, threads: int) -> Plan:
        """Return the plan to go on from a checkpoint, with the threads that the run began with (0: not known)."""
        return replace(self, saved=saved, threads=int(self.cfg.threads or threads or self.threads))


def make_plan(job: Job, source: Source, existing: Path | None = None) -> Plan:
    """Decide all that is to be decided of a job on its data. `existing`: the folder of the same run, if it goes on.

    Raise InputError for pieces that do not fit together, or that do not fit the data.
    """
    way, method = way_of(job.cfg), method_of(job.cfg)
    device = device_of(job.cfg, method)
    check_rows(job.cfg, source)
    cfg = replace(job.cfg, k=resolved_k(job.cfg, source))
    check_objective(cfg, source)
    check_memory(cfg, source.n, source.p, source.sparse)
    return Plan(job, way, cfg, method, device, threads_of(cfg, source), existing)


def method_of(cfg: Config) -> TrainedMethod | None:
    """Return the method that takes the steps of a configuration, None for a way that takes none.

    Raise InputError for pieces that do not fit together.
    """
    way = way_of(cfg)
    if way in SOLVERS:
        if problem := SOLVERS[way].refusal(cfg):
            raise InputError(problem)
        return None
    if fast_path_applies(cfg) and is_on_cpu(cfg):
        return NumpyMain.build(cfg)
    from sigmapca_cli.methods.method import make_method

    made: TrainedMethod = make_method(cfg)
    return made


def is_on_cpu(cfg: Config) -> bool:
    """Return whether a run computes on the CPU; where there may be a GPU, `device=auto` has to ask torch."""
    if cfg.device != "auto":
        return bool(cfg.device == "cpu")
    return not may_have_gpu() or device_by_torch(cfg).type == "cpu"


def needs_torch(cfg: Config) -> bool:
    """Return whether torch has to be imported for a run."""
    by_numpy = fast_path_applies(cfg) and (
        cfg.device == "cpu" or (cfg.device == "auto" and not may_have_gpu())
    )
    return way_of(cfg) not in SOLVERS and not by_numpy


def device_of(cfg: Config, method: TrainedMethod | None) -> Any:
    """Return where a run computes. Closed forms and solvers use the CPU, even where there is a GPU."""
    if isinstance(method, NumpyMain) or (method is None and cfg.device in ("auto", "cpu")):
        return "cpu"
    return device_by_torch(cfg)


def device_by_torch(cfg: Config) -> Any:
    """Return torch's device for a configuration. Raise InputError if it is not there."""
    from sigmapca_cli.training.device import pick_device

    return pick_device(cfg.device)


def threads_of(cfg: Config, source: Source) -> int:
    """Return the threads of a new run: those asked for, or what suits its work."""
    if cfg.threads:
        return int(cfg.threads)
    if way_of(cfg) in SOLVERS:
        return available_threads()
    threads = pick_threads(cfg.batch_size * source.p * cfg.k)  # multiplications of a step
    # Gathering the rows of many features takes as long as a product of them: it needs a core of its own, or the threads
    # of each product wait for it, many times over.
    return threads if source.p <= WIDE else max(1, threads - 1)


def check_rows(cfg: Config, source: Source) -> None:
    """Raise InputError if only sums over the rows are known, and the method needs rows."""
    if not source.has_rows and cfg.model.objective not in ("pca_svd", "ppca", "factor_analysis"):
        from sigmapca_cli.data.matrix.sums import NO_ROWS

        raise InputError(f"{named(cfg)}: {NO_ROWS}")


def named(cfg: Config) -> str:
    """Return the override that names the way of a configuration."""
    return f"model={cfg.model.name}" if way_of(cfg) is Way.DIRECT else f"solver={cfg.solver.name}"


def resolved_k(cfg: Config, source: Source) -> int:
    """Return k as a number. Raise InputError if the data have fewer features, rows or directions than components."""
    if isinstance(cfg.k, int) and cfg.k > min(source.n, source.p):
        check_k(cfg.k, source.n, source.p, min(source.n, source.p))
    if source.constant_features == source.p:
        raise InputError(f"data={source.name}: every feature is constant, there is nothing to learn")
    if isinstance(cfg.k, int):
        check_memory(cfg, source.n, source.p, source.sparse)
    k = count_for(source, cfg.k)
    axes = source.leading_axes(k)
    if axes.rank == 0:
        raise InputError(f"data={source.name}: every feature is constant, there is nothing to learn")
    check_k(k, source.n, source.p, axes.rank)
    return k


def check_objective(cfg: Config, source: Source) -> None:
    """Raise InputError if a run of this configuration on these data cannot have the objective that is asked for."""
    if "mcc" in cfg.objective and source.truth is None:
        raise InputError(
            f"objective=mcc: the true directions of data={source.name} are not known; "
            "choose reconstruction_error, stability, loss or unidentified"
        )
    if "loss" in cfg.objective and way_of(cfg) in SOLVERS:
        raise InputError(
            f"objective=loss: {named(cfg)} minimises no loss by steps; choose reconstruction_error"
        )
    if "stability" not in cfg.objective:
        return
    if distributed_env() is not None:
        raise InputError(
            "objective=stability: trains several runs; start it as one process, without torchrun"
        )
    if source.n // 2 < max(2, cfg.k):
        raise InputError(f"objective=stability: half of {source.n} rows is too few for k={cfg.k}")
    if cfg.data.half != "all" or cfg.data.part is not None:
        key = f"half={cfg.data.half}" if cfg.data.part is None else f"part={cfg.data.part}"
        raise InputError(f"objective=stability: compares two halves of the data; leave data.{key} out")
