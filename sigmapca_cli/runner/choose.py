"""What a configuration asks for: its method, its data, its device and its threads.

There are four ways to a solution: a closed form, Newton steps, fourth moments, and stochastic training. Only the last
loads torch. The import of torch takes longer than most problems take to be solved, so the code that all runs share does
without it; and the main method trains without it on a CPU.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  torch must not be the first to import it while a process ends
import contextlib
import importlib
import sys
import threading
from typing import Any

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.numpy_main import NumpyMain, fast_path_applies
from sigmapca_cli.processes import available_threads, distributed_env, may_have_gpu, pick_threads
from sigmapca_cli.runner.contracts import Method, SolvedMethod
from sigmapca_cli.runner.footprint import forecast_of
from sigmapca_cli.sources.base import Source
from sigmapca_cli.sources.implicit import WIDE

SMALL = 1_000_000_000  # entries of a matrix whose covariance takes about a second


def method_of(cfg: Config) -> Method:
    """Return the method of a whole configuration. Raise InputError for pieces that do not fit together."""
    if cfg.model.kind == "direct":
        from sigmapca_cli.runner.direct import Direct

        return Direct.build(cfg)
    if cfg.solver.name == "newton":
        from sigmapca_cli.runner.newton import Newton

        return Newton.build(cfg)
    if cfg.solver.name == "moments":
        from sigmapca_cli.runner.moments import Moments

        return Moments.build(cfg)
    if uses_numpy(cfg):
        return NumpyMain.build(cfg)
    from sigmapca_cli.methods.method import build

    return build(cfg)


def uses_numpy(cfg: Config) -> bool:
    """Return whether a run trains on NumPy's arrays: one process, on a CPU, and the fast path applies.

    Where there may be a GPU, `device=auto` has to ask torch.
    """
    return (
        fast_path_applies(cfg)
        and distributed_env() is None
        and (cfg.device == "cpu" or (cfg.device == "auto" and not may_have_gpu()))
    )


def needs_torch(cfg: Config) -> bool:
    """Return whether torch has to be imported for a run."""
    return not (cfg.model.kind == "direct" or cfg.solver.name != "stochastic" or uses_numpy(cfg))


def load_source(cfg: Config) -> Source:
    """Return the data of a run. Where torch is still to be imported, a thread imports it meanwhile.

    The eigenvectors are computed meanwhile too, as every run needs them. For large data they are left for later, so
    that configuration errors are reported first.
    """
    from sigmapca_cli.sources import build

    if not needs_torch(cfg) or "torch" in sys.modules:
        return build(cfg.data, forecast_of(cfg))
    # Not a daemon: a process that ends while a library is being loaded would crash.
    loading = threading.Thread(target=import_torch, name="import torch")
    loading.start()
    source = build(cfg.data, forecast_of(cfg))
    if loading.is_alive() and source.n * source.p <= SMALL and source.p <= WIDE:
        source.principal_axes()
    loading.join()
    return source


def import_torch() -> None:
    """Import torch. An error is raised again where torch is used; it is of no interest if the process is ending."""
    with contextlib.suppress(Exception):
        importlib.import_module("torch")


def device_of(cfg: Config, method: Method) -> Any:
    """Return where a run computes. Closed forms and solvers use the CPU, even where there is a GPU."""
    if (isinstance(method, SolvedMethod) and cfg.device in ("auto", "cpu")) or isinstance(method, NumpyMain):
        return "cpu"
    from sigmapca_cli.training.device import pick_device

    return pick_device(cfg.device)


def threads_of(cfg: Config, method: Method, source: Source, before: int) -> int:
    """Return the threads of a run: those asked for, those it was started with (`before`), or what suits its work."""
    if cfg.threads or before:
        return int(cfg.threads or before)
    if isinstance(method, SolvedMethod):
        return available_threads()
    threads = pick_threads(None, cfg.batch_size * source.p * cfg.k)  # multiplications of a step
    # Gathering the rows of many features takes as long as a product of them: it needs a core of its own, or the threads
    # of each product wait for it, many times over.
    return threads if source.p <= WIDE else max(1, threads - 1)


def check_objective(cfg: Config, source: Source) -> None:
    """Raise InputError if a run of this configuration on these data cannot have the objective that is asked for."""
    if "mcc" in cfg.objective and source.truth is None:
        raise InputError(
            f"objective=mcc: the true directions of data={source.name} are not known; "
            "choose reconstruction_error, stability, loss or unidentified"
        )
    if "loss" in cfg.objective and (cfg.model.kind == "direct" or cfg.solver.name != "stochastic"):
        way = f"model={cfg.model.name}" if cfg.model.kind == "direct" else f"solver={cfg.solver.name}"
        raise InputError(f"objective=loss: {way} minimises no loss by steps; choose reconstruction_error")
    if "stability" in cfg.objective and distributed_env() is not None:
        raise InputError(
            "objective=stability: trains several runs; start it as one process, without torchrun"
        )
    if "stability" in cfg.objective and isinstance(cfg.k, int) and source.n // 2 < max(2, cfg.k):
        raise InputError(f"objective=stability: half of {source.n} rows is too few for k={cfg.k}")
    if "stability" in cfg.objective and cfg.data.half != "all":
        raise InputError(
            f"objective=stability: compares two halves of the data; leave data.half={cfg.data.half} out"
        )
