"""How things are timed: in turn, in one run, so that a drift of the machine hits all alike."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

SIGMAPCA = [sys.executable, "-m", "sigmapca_cli"]
Row = dict[str, object]


def in_turn(functions: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each function, timed in turn so that a drift of the machine hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            found[name].append(function())
    return found


def ratio(found: dict[str, list[float]], top: str, bottom: str) -> float:
    """Median of the ratios of runs that stood side by side."""
    return statistics.median(a / b for a, b in zip(found[top], found[bottom], strict=True))


def timed(function: Callable[[], object]) -> Callable[[], float]:
    """The function's wall time in seconds."""

    def run() -> float:
        began = time.perf_counter()
        function()
        return time.perf_counter() - began

    return run


def process(*command: str, folder: str | None = None) -> Callable[[], float]:
    """Wall time of a whole process, from the shell's point of view."""
    return timed(
        lambda: subprocess.run(
            command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    )


def row(name: str, found: dict[str, list[float]], unit: float = 1.0, **more: object) -> Row:
    """Medians in seconds (or seconds / unit), and what was worked out from them."""
    medians = {key: round(statistics.median(values) / unit, 4) for key, values in found.items()}
    return {"name": name, **medians, **more}
