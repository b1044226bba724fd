"""Device and type of a run that torch computes."""

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from sigmapca_cli.system.errors import InputError


def pick_device(name: str) -> torch.device:
    """The device a run computes on; auto is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):  # others lack float64, or hold no numbers at all
        raise InputError(f"device={name}: choose one of auto, cpu, cuda, cuda:N")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f"device={name}: not available here ({reason}); use device=cpu or auto") from None
    return device


@dataclass
class Found:
    """How torch was set before the first of the blocks that are open now, in whatever thread."""

    blocks: int = 0
    threads: int = 1
    precision: str = "highest"


_lock, _found = threading.Lock(), Found()


@contextlib.contextmanager
def torch_set(threads: int, precision: str = "highest") -> Iterator[None]:
    """Let torch compute on so many threads, with this precision, inside the block; then it is set as it was before.

    The number of threads is stored with a run, for sums depend on it in the last bit. precision: how exactly torch
    multiplies float32 matrices, as torch names it: highest, high (TF32) or medium (bfloat16). It matters on GPUs; the
    products of the main method on a CPU are NumPy's, and exact.
    """
    with _lock:
        if not _found.blocks:
            _found.threads, _found.precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        _found.blocks += 1
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        with _lock:
            _found.blocks -= 1
            last = not _found.blocks
        torch.set_num_threads(_found.threads)
        if last:
            torch.set_float32_matmul_precision(_found.precision)
