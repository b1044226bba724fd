"""Fixtures that every room's tests share."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real CIFAR-10 and MNIST files, or a skip that says so."""
    named = os.environ.get("SIGMAPCA_SHARED_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"skipped: no real data files at {folder} (set SIGMAPCA_SHARED_DATA)")
    return folder
