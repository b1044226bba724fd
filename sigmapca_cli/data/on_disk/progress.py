"""Long work is announced: how long it will take, and a bar where there is a terminal."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")

LONG_SECONDS = 10.0
"""Work that takes longer is announced."""
MEASURED_SECONDS = 2.0
"""Seconds after which its duration is estimated."""


def paced(
    items: Iterable[Item], sizes: Iterable[float], total: float, words: str, count: int = 0
) -> Iterator[Item]:
    """Yield the items; after two seconds warn how long all will take, if it is long, and show a progress bar.

    sizes: the work of each item, in any unit; total: their sum. words: the warning, in which {time} is the time that is
    left and {left} the number of the `count` items that are left.
    """
    began, bar, done, estimated = time.monotonic(), None, 0.0, False
    try:
        for number, (item, size) in enumerate(zip(items, sizes, strict=False)):
            yield item
            done += size
            spent = time.monotonic() - began
            if not estimated and spent > MEASURED_SECONDS:
                estimated, left = True, spent * (total - done) / max(done, 1)
                if left > LONG_SECONDS:
                    text = words.format(left=count - number - 1, time=in_words(left))
                    logging.getLogger("sigmapca").warning(text)
                    bar = _bar(total)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
    finally:
        if bar is not None:
            bar.stop()


def in_words(seconds: float) -> str:
    """Return a duration as text: 40 s, 4 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(total: float) -> Any:
    """Return a progress bar on standard error if it is a terminal, else None."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    bar = Progress(BarColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    bar.add_task("reading", total=total)
    bar.start()
    return bar
