"""Is a process of this machine alive, and still the one that was meant?"""

import os
from pathlib import Path


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
