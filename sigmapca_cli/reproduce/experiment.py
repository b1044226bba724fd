"""What an experiment is made of: panels (what is run), claims (what is judged), and how its figure is drawn."""

from __future__ import annotations

import operator
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigmapca_cli.reproduce.plan import Panel, Setting, images, name_of
from sigmapca_cli.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    "≤": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
SEEDS = 3
CONSTRUCTED = ("newton", "moments")
"""Ways in which a claim holds by the construction of the solver, so that it says nothing."""
ABOUT_A = ("moments",)
"""Ways that have no a: solver=moments solves panels alike that differ in a alone."""


@dataclass(frozen=True)
class Condition:
    """A number that is measured once a repetition, and what is asked of it, such as "≥ 0.95"."""

    measure: str
    asked: str
    value: Callable[[Results], float]

    @property
    def relation(self) -> str:
        """The relation, one of RELATIONS."""
        return self.asked.partition(" ")[0]

    @property
    def threshold(self) -> float:
        """The number on the other side of it."""
        return float(self.asked.partition(" ")[2])


@dataclass(frozen=True)
class Claim:
    """One claim: it holds where the value is as asked for, such as "≥ 0.95", and what stands in `also` as well.

    ours: a claim that the paper does not make. not_for: ways in which it is not judged, because it holds or fails by
    the construction of the solver there. recorded: a loss of the authors' own runs, compared with their recipe and
    images only.
    """

    text: str
    measure: str
    asked: str
    value: Callable[[Results], float]
    recorded: bool = False
    ours: bool = False
    also: Condition | None = None
    not_for: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that is asked for, the main one first."""
        first = Condition(self.measure, self.asked, self.value)
        return (first, self.also) if self.also else (first,)

    @classmethod
    def of_loss(cls, loss: float, key: str, what: str = "") -> Claim:
        """Return the claim that a loss of the authors' own runs comes out in a panel; `what`: of which method."""
        return cls(
            f"Recorded loss {loss:g}{what and ': '}{what}",
            "mean over the last epoch, relative difference",
            "≤ 0.01",
            lambda r: abs(r.loss(key) / loss - 1),
            recorded=True,
        )

    def applies(self, setting: Setting) -> bool:
        """Return whether the claim is judged at all in a setting."""
        return (setting.faithful or not self.recorded) and setting.way not in self.not_for


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    draw: Callable[[Results], Figure]
    images: bool = True  # its panels are on image patches, so that --data and --quick apply
    # Overrides of recipe=default, where the experiment file holds the authors' own; and of a quick look.
    ours: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    seeds: int = SEEDS

    def runs(self, setting: Setting) -> list[tuple[Panel, int]]:
        """Return (panel, repetition) of every run that a setting asks for."""
        count = setting.repetitions(self.seeds)
        return [(panel, r) for panel in self.panels for r in range(count if panel.seeded else 1)]

    def names(self, setting: Setting) -> list[str]:
        """Return the names of these runs."""
        return [name_of(panel.key, r) for panel, r in self.runs(setting)]

    def overrides(self, panel: Panel, setting: Setting, repetition: int = 0) -> list[str]:
        """Return what `sigmapca train` is given for one run of a panel."""
        found = [f"experiment={self.name}", f"recipe={setting.recipe}"]
        if setting.recipe == "default":
            found += self.ours
        if self.images:
            found += [*images(panel, setting), *(self.quick if setting.quick else ())]
        again = [panel.seed(repetition)] if repetition else []
        return [
            *found,
            *(o for o in panel.overrides if not (again and o.startswith("seed="))),
            *again,
            *setting.extra,
        ]

    def command(self, panel: Panel, setting: Setting, repetition: int = 0) -> str:
        """Return the command that makes one run alone."""
        return shlex.join(["sigmapca", "train", *self.overrides(panel, setting, repetition)])
