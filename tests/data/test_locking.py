"""HDF5 data that another program holds: a lock, an open writer's note, a file system without locks."""

import errno
import os
import subprocess
import sys

import pytest

from sigmapca_cli.system.untrusted_files import in_the_way

HOLD = """
import h5py, numpy, sys
file = h5py.File(sys.argv[1], "w", locking=True, libver=sys.argv[2])
file["x"] = numpy.random.default_rng(0).normal(size=(50, 8))
file.flush()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "version, locking, words",
    [
        ("earliest", "TRUE", "set HDF5_USE_FILE_LOCKING=FALSE"),
        ("latest", "FALSE", "h5clear"),
        ("earliest", "FALSE", ""),
    ],
)
def test_a_file_that_another_program_writes_is_not_called_damaged(tmp_path, version, locking, words):
    """A real lock of another process, and HDF5's own note of an open writer; without both the file is simply read."""
    path = tmp_path / "data.h5"
    read = (
        "import sys; from pathlib import Path; from sigmapca_cli.data.config import DataConfig;"
        "from sigmapca_cli.data.readers.array_files import read_matrix;"
        "print(read_matrix(Path(sys.argv[1]), DataConfig(name='array')).data.shape)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), version],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        environment = {**os.environ, "HDF5_USE_FILE_LOCKING": locking}
        command = [sys.executable, "-c", read, str(path)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = (ran.stdout + ran.stderr).strip().splitlines()[-1]
    if words:
        assert "another program has it open for writing" in said and words in said and "damaged" not in said
    else:
        assert said == "(50, 8)"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(number):
    """HDF5's own text with these numbers: such a file system cannot be had here."""
    text = f"Unable to synchronously open file (unable to lock file, errno = {number}, error message = '…')"
    assert "offers no file locks: set HDF5_USE_FILE_LOCKING=FALSE" in str(in_the_way(OSError(text)))
    assert in_the_way(OSError("Unable to synchronously open file (truncated file: eof = 96)")) is None
