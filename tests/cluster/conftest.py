"""A real SLURM and a real Grid Engine of one node, started for these tests."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "start_slurm.sh"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")


def free_port() -> str:
    """A port that nobody uses: another cluster of a test may be running."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return str(made.getsockname()[1])


def installed(program: str) -> bool:
    """Return whether a program is there, also one for root only."""
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is not None


@pytest.fixture(scope="session")
def slurm() -> Iterator[dict[str, str]]:
    """The environment in which sbatch, squeue and our launcher find the cluster; skips where there can be none."""
    missing = [name for name in PROGRAMS if not installed(name)]
    if missing:
        pytest.skip(f"skipped: SLURM is not installed (no {', '.join(missing)}); .ci/run full installs it")
    if os.geteuid() != 0:
        pytest.skip("skipped: starting a SLURM needs root")
    pytest.importorskip("submitit", reason="skipped: the extra `cluster` is not installed")
    folder = tempfile.mkdtemp(prefix="slurm-")
    ports = {"SLURMCTLD_PORT": free_port(), "SLURMD_PORT": free_port()}
    started = subprocess.run(
        [str(SCRIPT), folder], capture_output=True, text=True, env={**os.environ, **ports}
    )
    if started.returncode:
        subprocess.run([str(SCRIPT), "--stop", folder], check=False)
        pytest.skip(f"skipped: SLURM does not start here: {started.stderr[-2000:]}")
    # The shell script of the example calls `sigmapca`: the one of this environment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    yield {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf", "OMP_NUM_THREADS": "1", "PATH": path}
    subprocess.run([str(SCRIPT), "--stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def gridengine() -> Iterator[dict[str, str]]:
    """The environment in which qsub and qstat find a Grid Engine; skips where there can be none."""
    missing = [name for name in ("qsub", "sge_qmaster", "sge_execd") if not installed(name)]
    if missing:
        pytest.skip(
            f"skipped: Grid Engine is not installed (no {', '.join(missing)}); .ci/run full installs it"
        )
    if os.geteuid() != 0:
        pytest.skip("skipped: starting a Grid Engine needs root")
    script = SCRIPT.with_name("start_gridengine.sh")
    folder = tempfile.mkdtemp(prefix="gridengine-")
    os.chmod(folder, 0o755)
    ports = {"SGE_QMASTER_PORT": free_port(), "SGE_EXECD_PORT": free_port()}
    started = subprocess.run(
        [str(script), folder], capture_output=True, text=True, env={**os.environ, **ports}, timeout=120
    )
    if started.returncode:
        subprocess.run([str(script), "--stop", folder], check=False)
        pytest.skip(f"skipped: Grid Engine does not start here: {started.stderr[-2000:]}")
    cell = {"SGE_ROOT": folder, "SGE_CELL": "default", **ports}
    yield {**os.environ, **cell, "OMP_NUM_THREADS": "1", "VIRTUAL_ENV": str(Path(sys.executable).parents[1])}
    subprocess.run([str(script), "--stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)
