"""Processes of this machine: is one alive, is this one of several that share a run, and its cores and threads."""

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.limits import cores as cores

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Found = TypeVar("Found")


def process_start(pid: int) -> str | None:
    """When the process started, in the kernel's ticks, so that a reused pid is not believed.

    None when it is gone; where there is no /proc, "unknown" for any living process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"


@cache
def boot_id() -> str:
    """Return what changes whenever the machine starts; "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_space() -> str:
    """Return the namespaces in which a process number and its start time are meant; "" where there are none."""
    try:
        return " ".join(os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "time"))
    except OSError:
        return ""


@dataclass(frozen=True)
class WorkerInfo:
    """This rank among `world` processes of one run: its number, and its number on this machine."""

    rank: int
    world: int
    local: int


def distributed_env() -> WorkerInfo | None:
    """Return what `torchrun` or `srun` says of this process; None for a process that runs alone.

    torchrun sets RANK and WORLD_SIZE. The tasks of one `srun` count as one run only where MASTER_ADDR is set, as
    PyTorch wants it: else every task is a run of its own, as in `srun -n 4 sh -c 'sigmapca train seed=$SLURM_PROCID'`.
    Raises InputError where the variables do not fit together.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if "RANK" not in os.environ and os.environ.get("MASTER_ADDR") and "SLURM_STEP_ID" in os.environ:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    texts = [os.environ.get(name, "") for name in names]
    if (texts[1] or "1") == "1":
        return None
    if not all(text.isdigit() for text in texts[:2]) or not os.environ.get("MASTER_ADDR"):
        raise InputError(
            f"{names[1]}={texts[1]}, but RANK or MASTER_ADDR is not set as torchrun sets it: start with torchrun, "
            f"or unset {names[1]} for one process"
        )
    rank, world, local = (int(text or 0) for text in texts)
    return WorkerInfo(rank, world, local)


def refuse_several(what: str, instead: str) -> None:
    """Raise InputError in a run over several processes: `what` is done by one process; `instead` says what to do."""
    here = distributed_env()
    if here is not None:
        raise InputError(f"{what} is not spread over {here.world} processes; {instead}")


_thread = threading.local()


def available_threads() -> int:
    """Return the number of cores that this thread may use: of the process all, or OMP_NUM_THREADS; of `mapped` one."""
    if getattr(_thread, "is_one_of_several", False):
        return 1
    named = os.environ.get("OMP_NUM_THREADS", "")
    return int(named) if named.isdigit() and int(named) > 0 else cores()


def pick_threads(work: int) -> int:
    """Return the threads for a step of `work` multiplications: waking threads costs more than a small step gains."""
    return 1 if work < 20_000_000 else available_threads()


def may_have_gpu() -> bool:
    """Return whether torch might find a GPU, from what the system shows; to ask torch itself means to import it.

    Return False only if there is certainly no GPU: CUDA_VISIBLE_DEVICES is empty, or Linux has no device node of
    NVIDIA, AMD or WSL.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "unset").strip() in ("", "-1"):
        return False
    if sys.platform == "darwin":
        return False
    names = ("nvidia", "nvhost", "nvmap", "nvgpu", "kfd", "dxg")
    try:
        return sys.platform != "linux" or any(name.startswith(names) for name in os.listdir("/dev"))
    except OSError:
        return True


@contextmanager
def blas(threads: int) -> Iterator[None]:
    """Limit NumPy's products to so many threads. Their time, and the last bits of their sums, depend on it."""
    with _libraries(tuple(name for name in MAKE_PRODUCTS if name in sys.modules)).limit(
        limits=threads, user_api="blas"
    ):
        yield


MAKE_PRODUCTS = ("numpy", "scipy.linalg", "scipy.sparse.linalg", "sklearn", "torch")
"""Modules that bring libraries whose products have threads."""


@cache
def _libraries(imported: tuple[str, ...]) -> "ThreadpoolController":
    """Return the libraries that have threads: they are looked for again, .02 s, once more of them are imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def mapped(function: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
    """Yield function(item) in the order of the items, on as many threads as there are cores, a few items ahead.

    Each thread makes its products alone. The threads of one product wait for each other in a loop: where other
    programs want the same cores that takes ten times as long.
    """
    from concurrent.futures import ThreadPoolExecutor

    threads = available_threads()
    with blas(1):
        if threads == 1:
            yield from map(function, items)
            return
        coming = iter(items)
        mark = partial(setattr, _thread, "is_one_of_several", True)
        with ThreadPoolExecutor(threads, thread_name_prefix="mapped", initializer=mark) as pool:
            waiting = deque(pool.submit(function, item) for item in islice(coming, 2 * threads))
            while waiting:
                found = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(coming, 1))
                yield found


PATIENCE = 30.0
"""Seconds in which a worker whose parent was killed saves its run."""


@cache
def end_with(parent: int) -> None:
    """Let this worker end soon after its parent, which may be killed: it would wait for work, or do all that is left.

    A run that it trains is saved, as by any SIGTERM.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        os._exit(75)

    threading.Thread(target=watch, daemon=True).start()
