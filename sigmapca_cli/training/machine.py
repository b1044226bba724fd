"""Device, type and number of threads of a run."""

from contextlib import AbstractContextManager

import torch

from sigmapca_cli.errors import InputError
from sigmapca_cli.processes import available_threads, blas

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


def pick_threads(asked: int | None, work: int) -> int:
    """Threads for a step of `work` multiplications: small steps lose more to waking threads than they gain."""
    if asked:
        return asked
    return 1 if work < 20_000_000 else available_threads()


def set_threads(count: int) -> None:
    """Fix torch's number of threads; sums depend on it in the last bit, so it is stored with the run."""
    torch.set_num_threads(count)


def blas_threads() -> AbstractContextManager[None]:
    """Inside, NumPy's products take as many threads as torch's: with small ones its own choice is too many."""
    return blas(torch.get_num_threads())
