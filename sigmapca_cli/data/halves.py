"""Two halves of one data set that are two samples: which rows, images or subjects they consist of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sigmapca_cli.data import build
from sigmapca_cli.data.config import DataConfig, kinds_of
from sigmapca_cli.data.row_order import order_in
from sigmapca_cli.data.source import Source
from sigmapca_cli.data.standardisation import rows_of
from sigmapca_cli.system.errors import InputError

ALTERNATE = ("even", "odd")
STRETCHES = ("1/2", "2/2")


@dataclass(frozen=True)
class Halves:
    """How a data set is halved.

    Attributes
    ----------
    names : tuple of str
        Values of data.half, or of data.part.
    words : str
        What the halves are.
    by_time : bool
        Whether rows are in time: every second row would be nearly the same sample as the rows beside.
    """

    names: tuple[str, str]
    words: str
    by_time: bool = False

    def configs(self, cfg: DataConfig) -> list[DataConfig]:
        """Return the data groups of the two halves."""
        return [replace(cfg, **with_half(name)) for name in self.names]


EVERY_SECOND = Halves(ALTERNATE, "even and odd rows")


def with_half(name: str) -> dict[str, Any]:
    """Return the fields of the data group that take a half, by its name."""
    return {"half": name, "part": None} if name in ALTERNATE else {"half": "all", "part": name}


def halves_of(cfg: DataConfig, source: Source | None = None) -> Halves:
    """Return how a data set is halved. Raise InputError if a part of it is asked for.

    source: the data, if they were built. Pictures are halved by picture, a single one into strips; rows with subjects
    by subject; rows in time into two stretches; other rows alternate.
    """
    if cfg.part is not None:
        raise InputError(f"data.part={cfg.part}: the halves are made here; leave data.part out")
    whole = replace(cfg, half="all")
    if cfg.subject is not None:
        return Halves(STRETCHES, "two groups of subjects")
    if cfg.name in kinds_of("made"):
        return EVERY_SECOND
    if cfg.name in kinds_of("pixels") and cfg.name != "images" and cfg.images != 1:
        return Halves(ALTERNATE, "even and odd images")
    source = build(whole) if source is None else source
    if source.pictures is not None:
        one = Halves(STRETCHES, "two strips of the image")
        return one if source.pictures == 1 else Halves(ALTERNATE, "even and odd images")
    made = EVERY_SECOND
    if (order := order_in(source)).ordered:
        made = Halves(STRETCHES, f"two stretches of rows, because {order.words}", True)
    refuse_copies(source, made, whole)
    return made


def refuse_copies(source: Source, made: Halves, whole: DataConfig) -> None:
    """Raise InputError if the halves share rows that are copies: they are no two samples, and agree falsely."""
    if source.copies is None:
        return
    some, others = (rows_of(source.n, cfg) for cfg in made.configs(whole))
    if count := source.copies.shared(some, others):
        raise InputError(
            f"{source.copies.words}, and {count} of the first half ({made.words}) are in the second: halves agree "
            "falsely; keep each row once"
        )
