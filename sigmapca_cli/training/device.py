"""Device and type of a run that torch computes."""

import contextlib
from collections.abc import Iterator

import torch

from sigmapca_cli.system.errors import InputError

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def pick_device(name: str) -> torch.device:
    """The device a run computes on; auto is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f"device={name}: not available here ({reason}); use device=cpu or auto") from None
    return device


def set_precision(name: str) -> None:
    """How exactly torch multiplies float32 matrices: highest, high (TF32) or medium (bfloat16), as torch names them.

    It matters on GPUs; the products of the main method on a CPU are NumPy's, and exact.
    """
    torch.set_float32_matmul_precision(name)


def set_threads(count: int) -> None:
    """Fix torch's number of threads; sums depend on it in the last bit, so it is stored with the run."""
    torch.set_num_threads(count)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch compute on so many threads inside the block, within a program that has its own number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
