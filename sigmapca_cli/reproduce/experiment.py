"""What an experiment is made of: panels (what is run), claims (what is judged), and how its figure is drawn."""

from __future__ import annotations

import operator
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigmapca_cli.reproduce.plan import Panel, Setting, images
from sigmapca_cli.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    "≤": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Claim:
    """One claim of the paper: it holds where `value RELATION threshold`."""

    text: str
    measure: str
    relation: str
    threshold: float
    value: Callable[[Results], float]
    recorded: bool = False  # a loss of the authors' own runs: judged with their recipe and images only


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

    def runs(self, setting: Setting) -> list[Panel]:
        """The panels that a setting asks for."""
        return [panel for panel in self.panels if setting.faithful or not panel.recorded]

    def overrides(self, panel: Panel, setting: Setting) -> list[str]:
        """What `sigmapca train` is given for a panel."""
        found = [f"experiment={self.name}", f"recipe={setting.recipe}"]
        if setting.recipe == "default":
            found += self.ours
        if self.images:
            found += [*images(panel, setting), *(self.quick if setting.quick else ())]
        return [*found, *panel.overrides, *setting.extra]

    def command(self, panel: Panel, setting: Setting) -> str:
        """The command that runs one panel alone."""
        return shlex.join(["sigmapca", "train", *self.overrides(panel, setting)])
