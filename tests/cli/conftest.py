"""The command line as a shell sees it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Result = subprocess.CompletedProcess[str]
Sigmapca = Callable[..., Result]


@pytest.fixture
def sigmapca(tmp_path: Path) -> Sigmapca:
    """Run `sigmapca ARGUMENTS` in an empty folder; the process's status, output and errors."""

    def call(*arguments: str, timeout: float = 120, **environment: str) -> Result:
        variables = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **environment}
        return subprocess.run(
            [sys.executable, "-m", "sigmapca_cli", *arguments],
            cwd=tmp_path,
            env=variables,
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    return call


SMALL = ("data=planted", "data.n=4000", "data.p=16", "data.k=4", "data.group=2", "k=4")


@pytest.fixture
def small() -> tuple[str, ...]:
    """Overrides of a data set that trains in a blink."""
    return SMALL
