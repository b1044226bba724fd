"""File systems of a few megabytes, and how to fill them."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 4 * 1024 * 1024


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Mount a file system of four megabytes below a folder."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("skipped: mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fill a disk but for so many bytes, or wholly if a run writes meanwhile; return the file that does."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError):  # no space left: the run has taken some since the free space was read
        ballast.write_bytes(b"x" * max(shutil.disk_usage(disk).free - leave, 0))
    return ballast
