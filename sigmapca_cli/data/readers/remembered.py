"""Tables and layouts of text files that one command reads several times, such as a page and its two halves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

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


def remembered(
    path: Path, asked: Hashable, read: Callable[[], Found], is_small: Callable[[Found], bool] = lambda _: True
) -> Found:
    """Return what `read` returns of a file, a copy where the same was asked before inside `remembering()`.

    is_small: whether what was read is worth its memory.
    """
    kept = _kept.get()
    if kept is None:
        return read()
    state = path.stat()
    key = str(path.absolute()), state.st_mtime_ns, state.st_size, asked
    if key not in kept:
        found = read()
        if not is_small(found):
            return found
        kept[key] = found
    return deepcopy(kept[key])
