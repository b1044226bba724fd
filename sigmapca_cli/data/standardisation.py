"""What the options of every data source mean: how raw rows are standardised, and which half of them is taken."""

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


def half_of(count: int, half: str) -> slice:
    """The rows or images of a disjoint half."""
    slices = {"all": slice(0, count), "even": slice(0, count, 2), "odd": slice(1, count, 2)}
    return slices[half]


def need_two_samples(n: int, where: str) -> None:
    if n < 2:
        raise InputError(f"{where} has {n} sample{'s' if n != 1 else ''}: at least 2 are needed")
