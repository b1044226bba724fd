"""Limits that a reader must stay within, whatever a file claims."""

import faulthandler
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

MOST_MEMORY = 1 << 30
LONGEST = 300  # seconds that one test may hang in a library before the process ends with a traceback


@pytest.fixture
def limited() -> Iterator[None]:
    """At most a gigabyte more than the process holds now, and no hanging for ever."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def watched() -> Iterator[None]:
    """A hang inside a C library cannot be interrupted, but it can be told."""
    seconds = LONGEST if not os.environ.get("SIGMAPCA_FUZZ") else 3600
    faulthandler.dump_traceback_later(seconds, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
