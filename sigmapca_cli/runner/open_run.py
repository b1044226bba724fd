"""A run that has begun: its folder is locked, its log and its file are open."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from sigmapca_cli.data.source import Source
from sigmapca_cli.runner.plan import Plan
from sigmapca_cli.storage.sidecars import LogFile
from sigmapca_cli.storage.write import RunWriter
from sigmapca_cli.system.errors import SigmapcaError, Signalled

log = logging.getLogger("sigmapca")

active_run: ContextVar[Path | None] = ContextVar("active_run", default=None)
"""Which run the current log records belong to. With several runs open, a record goes only to that run's train.log;
None means to all of them."""


@dataclass
class OpenRun:
    """A run that has begun, as its plan says."""

    plan: Plan
    source: Source
    folder: Path
    writer: RunWriter


@contextlib.contextmanager
def train_log(folder: Path) -> Iterator[None]:
    """Write all records of the `sigmapca` logger into train.log, and the error with which the block ends."""
    handler = LogFile(folder)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(lambda record: active_run.get() in (None, folder))
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    except BaseException as problem:
        # To the file only: the caller that catches the error tells the user.
        expected = isinstance(problem, SigmapcaError | SystemExit | KeyboardInterrupt | Signalled)
        trace = None if expected else sys.exc_info()
        text = f"{type(problem).__name__}: {problem}"
        handler.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, text, (), trace))
        raise
    finally:
        log.removeHandler(handler)
        handler.close()
