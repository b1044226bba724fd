"""Tables and layouts of text files that one command reads several times, such as a page and its two halves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.readers.table import Table

LARGEST = 1 << 26
"""Bytes of a table up to which it is kept."""
READ_BY = (
    "key", "dataset", "rows", "header", "columns", "drop", "decimal", "delimiter", "encoding", "subject",
    "recognise", "flat",
)  # fmt: skip
"""Fields of the data group that a reader heeds; what is done with the numbers comes later."""
_kept: ContextVar[dict[Hashable, Any] | None] = ContextVar("kept", default=None)

Found = TypeVar("Found")


@contextmanager
def remembering() -> Iterator[None]:
    """Read each table once inside the block, as long as its file does not change."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def remembered_table(path: Path, cfg: DataConfig, read: Callable[[Path, DataConfig], Table]) -> Table:
    """Return what `read` returns, a copy where the table was read before inside `remembering()`."""
    kept = _kept.get()
    if kept is None:
        return read(path, cfg)
    key = ("table", *_state(path), repr([getattr(cfg, name, None) for name in READ_BY]))
    if key not in kept:
        table = read(path, cfg)
        if type(table.data) is not np.ndarray or table.data.nbytes > LARGEST:
            return table
        kept[key] = table
    found: Table = kept[key]
    return replace(
        found,
        data=found.data.copy(order="K"),
        names=None if found.names is None else list(found.names),
        labels=None if found.labels is None else list(found.labels),
        notes=list(found.notes),
        units=dict(found.units),
    )


def remembered_layout(path: Path, options: Hashable, find: Callable[[], Found]) -> Found:
    """Return what `find` returns, a copy where it was found before inside `remembering()`."""
    kept = _kept.get()
    if kept is None:
        return find()
    key = ("layout", *_state(path), options)
    if key not in kept:
        kept[key] = find()
    return deepcopy(kept[key])


def _state(path: Path) -> tuple[Hashable, ...]:
    """Return what changes with a file."""
    found = path.stat()
    return str(path.absolute()), found.st_mtime_ns, found.st_size
