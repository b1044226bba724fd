"""File systems of a few megabytes, and how to fill them."""

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
    """Fill a disk but for so many bytes; return the file that does."""
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * (shutil.disk_usage(disk).free - leave))
    return ballast
