"""Shares of rows: the stretch of rows that this process reads, where several processes (ranks) solve one problem.

All ranks run the same code. Each reads and projects its own stretch of the rows, and every sum over rows becomes a sum
over ranks. So all ranks hold the same sums, take the same decisions, and end in the same answer. In one process a
share is all rows, and the functions here return what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np

Made = TypeVar("Made")

ALIGNED = 8192
"""Number of rows that the first row of a share is a multiple of, where there are MANY such stretches for each rank."""
MANY = 16


class Sharing(Protocol):
    """The collectives of the ranks that hold shares. Every rank calls them in the same order."""

    rank: int
    world: int

    def add_(self, values: np.ndarray, patient: bool) -> np.ndarray:
        """Sum a float64 vector over the ranks, in place, and return it. patient: another rank may still read rows."""

    def all_gather(self, word: Any) -> list[Any]:
        """Return the objects of all ranks, in the order of the ranks."""

    def broadcast_from_zero(self, word: Any) -> Any:
        """Return rank 0's object on every rank."""

    def run_on_all(self, make: Callable[[], Made]) -> Made:
        """Return what `make` returns here. If it raises on one rank, raise on all."""


_sharing: ContextVar[Sharing | None] = ContextVar("sharing", default=None)


@contextmanager
def shared(sharing: Sharing | None) -> Iterator[None]:
    """Let each rank read its share of the rows inside the block; None: all rows in this process."""
    token = _sharing.set(sharing)
    try:
        yield
    finally:
        _sharing.reset(token)


def sharing() -> Sharing | None:
    """Return the collectives of the ranks; None in one process."""
    return _sharing.get()


def own(n: int) -> range:
    """Return the numbers of 0 to n − 1 that belong to this rank: a contiguous stretch, all of them in one process.

    Stretches of many rows begin at a multiple of ALIGNED. Sums over a block of float32 rows are float32, so the same
    blocks give the same sums as in one process.
    """
    here = _sharing.get()
    if here is None:
        return range(n)
    unit = ALIGNED if n >= MANY * here.world * ALIGNED else 1
    first, last = (n * rank // here.world // unit * unit for rank in (here.rank, here.rank + 1))
    return range(first, n if here.rank + 1 == here.world else last)


def own_blocks(n: int, size: int) -> Iterator[slice]:
    """Yield this rank's blocks of `size` rows as slices: the same blocks as in one process, shared out whole."""
    here, blocks = _sharing.get(), -(-n // size)
    first, last = (
        (0, blocks) if here is None else (blocks * r // here.world for r in (here.rank, here.rank + 1))
    )
    for block in range(first, last):
        yield slice(block * size, min((block + 1) * size, n))


def own_of(index: np.ndarray, n: int) -> np.ndarray:
    """Return the part of an increasing index of n rows that lies in this rank's share."""
    mine = own(n)
    first, last = index.searchsorted([mine.start, mine.stop])
    return index[first:last]


def added(values: tuple[np.ndarray, ...], *, patient: bool = False) -> tuple[np.ndarray, ...]:
    """Return the sums of float64 arrays over the ranks, by one all-reduce; the arrays themselves in one process.

    patient: wait as long as during set-up, because another rank may still read its rows.
    """
    import numpy as np

    here = _sharing.get()
    if here is None:
        return values
    arrays = [np.asarray(value, np.float64) for value in values]
    flat = here.add_(np.concatenate([array.ravel() for array in arrays]), patient)
    ends = np.cumsum([array.size for array in arrays])[:-1]
    return tuple(part.reshape(array.shape) for part, array in zip(np.split(flat, ends), arrays, strict=True))


def gathered(word: Any) -> list[Any]:
    """Return the objects of all ranks, in the order of the ranks; a list of this one in one process."""
    here = _sharing.get()
    return [word] if here is None else here.all_gather(word)


def agreed(value: Made) -> Made:
    """Return rank 0's value on every rank: different processors round differently, and the ranks would drift apart."""
    here = _sharing.get()
    return value if here is None else here.broadcast_from_zero(value)


def together(make: Callable[[], Made]) -> Made:
    """Return what `make` returns here; raise on all ranks if it raises a SigmapcaError on one."""
    here = _sharing.get()
    return make() if here is None else here.run_on_all(make)


def place(rows: Any) -> tuple[int, int]:
    """Return the number of rows of the ranks before this one, and of all ranks, for rows that every rank has a part of.

    A collective.
    """
    counts = gathered(len(rows))
    here = _sharing.get()
    return (0 if here is None else sum(counts[: here.rank])), sum(counts)
