"""What the options of every data source mean: how raw rows are standardised, and which part of them is taken."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.system.errors import InputError


@dataclass
class Standardisation:
    """How raw rows become x, whatever the source: see `DataConfig` for the choices."""

    standardise: str = "feature"
    epsilon: float | None = None
    relative_epsilon: float = 0.0
    whiten: str = "none"
    scale_input: float = 1.0
    # Younger than the hash of the data: they join it only where they are set.
    whiten_rank: int | None = field(default=None, repr=False)
    centre: bool = field(default=True, repr=False)

    @classmethod
    def of(cls, cfg: DataConfig, relative_epsilon: float = 0.0) -> "Standardisation":
        scale = float(cfg.scale_input)
        younger = cfg.whiten_rank, cfg.centre
        return cls(str(cfg.standardise), cfg.epsilon, relative_epsilon, cfg.whiten, scale, *younger)

    @property
    def described(self) -> str:
        """What tells these options apart in the hash of the data."""
        rank = "" if self.whiten_rank is None else f" whiten_rank={self.whiten_rank}"
        return rank + ("" if self.centre else " centre=False")

    @property
    def turns(self) -> bool:
        """Whether known directions do not hold in the rows made with it."""
        return self.standardise != "none" or self.whiten != "none"


GAP = 100
"""One row in so many is left out at each inner edge of a part, so that no two parts have neighbouring rows."""


def images_of(count: int, cfg: DataConfig) -> slice:
    """The images, or the subjects, of data.half or data.part. Raise InputError if there are fewer than parts."""
    if cfg.part is None:
        slices = {"all": slice(0, count), "even": slice(0, count, 2), "odd": slice(1, count, 2)}
        return slices[cfg.half]
    number, parts = part_of(cfg)
    if count < parts:
        raise InputError(f"data.part={cfg.part}: there are {count} images or subjects; ask for fewer parts")
    return slice(count * (number - 1) // parts, count * number // parts)


def rows_of(count: int, cfg: DataConfig) -> slice:
    """The rows of data.half or data.part; a part ends before its neighbours begin."""
    if cfg.part is None:
        return images_of(count, cfg)
    number, parts = part_of(cfg)
    gap = -(-count // GAP)
    first, last = count * (number - 1) // parts, count * number // parts
    return slice(first + gap * (number > 1), max(last - gap * (number < parts), first))


def part_of(cfg: DataConfig) -> tuple[int, int]:
    """Return data.part as its number, from 1, and how many parts there are."""
    number, parts = str(cfg.part).split("/")
    return int(number), int(parts)


def pieces_in(pieces: Iterable[int], part: range) -> tuple[int, ...]:
    """Return where pieces begin in a part of the rows, as numbers of its rows."""
    first = {-(-(row - part.start) // part.step) for row in pieces if part.start < row < part.stop}
    return tuple(sorted(row for row in first if row < len(part)))


def need_two_samples(n: int, where: str) -> None:
    if n < 2:
        raise InputError(f"{where} has {n} sample{'s' if n != 1 else ''}: at least 2 are needed")
