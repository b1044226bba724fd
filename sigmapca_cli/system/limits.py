"""How much memory and how many cores a process may take: of the machine, its container, its scheduler and its shell."""

import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

UNLIMITED = 1 << 60
"""A limit of a control group that is larger than this, in bytes, is none."""


def memory_left(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> float:
    """Return the bytes that this process may still take; infinity where nothing is known, as outside of Linux.

    The least of: what the machine has free, what is left of the control groups (version 1 or 2) that hold the process,
    of `ulimit -v`, and of SLURM's --mem or --mem-per-cpu. `root`: where proc and sys are mounted.
    """
    known = [
        *machine_memory(root),
        *own_limit(root),
        *(limit - used for limit, used in group_memory(root)),
        *slurm_memory(root, environ),
    ]
    return float(min(known, default=float("inf")))


def machine_memory(root: Path) -> Iterator[float]:
    """Yield the bytes that the machine has available."""
    for line in lines_of(root / "proc/meminfo"):
        if line.startswith("MemAvailable"):
            yield float(line.split()[1]) * 1024


def own_limit(root: Path) -> Iterator[float]:
    """Yield what is left of the address space that the shell allows."""
    limit, statm = resource.getrlimit(resource.RLIMIT_AS)[0], lines_of(root / "proc/self/statm")
    if limit != resource.RLIM_INFINITY and statm:
        yield limit - int(statm[0].split()[0]) * resource.getpagesize()


def group_memory(root: Path) -> Iterator[tuple[float, float]]:
    """Yield (limit, bytes in use) of every control group around this process that has a limit.

    Pages of files that the kernel may drop at any time do not count as used.
    """
    names = (
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ("", "memory.max", "memory.current", "inactive_file"),
    )
    for controller, maximum, current, droppable in names:
        for folder in groups(root, controller):
            limit, used = number_in(folder / maximum), number_in(folder / current)
            if limit is None or used is None or limit > UNLIMITED:
                continue
            stat = [line.split() for line in lines_of(folder / "memory.stat")]
            dropped = sum(float(words[1]) for words in stat if len(words) == 2 and words[0] == droppable)
            yield limit, max(used - dropped, 0.0)


def slurm_memory(root: Path, environ: Mapping[str, str]) -> Iterator[float]:
    """Yield what is left of the memory that SLURM gives a job on this node, where it says so; 0 means all of it."""
    per_node, per_cpu = (as_number(environ.get(f"SLURM_MEM_PER_{unit}")) for unit in ("NODE", "CPU"))
    cpus = as_number(environ.get("SLURM_CPUS_ON_NODE")) or 1.0
    megabytes = per_node or (per_cpu or 0.0) * cpus
    if megabytes:
        statm = lines_of(root / "proc/self/statm")
        resident = int(statm[0].split()[1]) * resource.getpagesize() if statm else 0
        yield megabytes * (1 << 20) - resident


def cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use: by its affinity, and by the CPU quota of its control group.

    A quota of 2.5 cores counts as 2: threads beyond it would be stopped in every period.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = []
    for folder in groups(root, ""):
        words = (lines_of(folder / "cpu.max") or [""])[0].split()
        if len(words) == 2 and words[0] != "max":
            quotas.append((as_number(words[0]), as_number(words[1])))
    for folder in groups(root, "cpu"):
        quotas.append((number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us")))
    allowed = [quota / period for quota, period in quotas if quota and period and quota > 0]
    return max(1, int(min([count, *allowed])))


def groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and of those around it; "" is version 2.

    In a container the path of the group often does not exist: its root is then the group itself.
    """
    for line in lines_of(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controller != controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controllers if controller else "")
        if controller and not top.exists():
            top = root / "sys/fs/cgroup" / controller
        folder = top / path.lstrip("/")
        for place in (folder, *folder.parents):
            if place.exists():
                yield place
            if place == top:
                break


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file of the kernel; none where there is no such file."""
    try:
        return file.read_text().splitlines()
    except (OSError, ValueError):
        return []


def number_in(file: Path) -> float | None:
    """Return the number that a file holds; None for another word, such as max."""
    return as_number((lines_of(file) or [""])[0])


def as_number(text: str | None) -> float | None:
    """Return a text as a number, or None."""
    try:
        return float(text or "")
    except ValueError:
        return None
