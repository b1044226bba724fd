"""All experiments by name: the paper's in its order, then those that are in no paper."""

from __future__ import annotations

import re

from sigmapca_cli.reproduce import images, losses, settings, signals, tables, theory
from sigmapca_cli.reproduce.experiment import Experiment
from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.system.errors import InputError

ORDER = (
    "cifar-filters", "signals-orthogonal", "signals-non-orthogonal", "signals-same-variance",
    "signals-distinct-variance", "zca-whitened", "rotational-indeterminacy", "trainable-sigma", "input-scale",
    "tanh-scale", "latent-reconstruction", "asymmetric", "first-64", "rica-input-scale", "rica-beta",
    "points-uniform", "points-laplace", "linear-summary", "nonlinear-summary", "theory",
)  # fmt: skip
"""The figures and tables of the paper, as docs/reproduction.md shows them; others are in its page of results only."""

FIGURES: dict[str, tuple[int, ...]] = {
    "cifar-filters": (4,), "signals-orthogonal": (5,), "signals-non-orthogonal": (6,), "zca-whitened": (7,),
    "rotational-indeterminacy": (8, 9), "trainable-sigma": (10,), "input-scale": (11,), "tanh-scale": (12, 13),
    "latent-reconstruction": (14, 15, 16), "asymmetric": (17,), "first-64": (18,), "rica-input-scale": (19,),
    "rica-beta": (20,), "signals-same-variance": (21,), "signals-distinct-variance": (22,), "points-uniform": (23,),
    "points-laplace": (24,),
}  # fmt: skip
"""Numbers of the paper's figures, in the order of its source, that each experiment reproduces."""

DRAWINGS = (1, 2, 3)
"""Figures of the paper that illustrate the theory and have no data."""

_FOUND = {
    experiment.name: experiment
    for family in (images, settings, losses, signals, tables, theory)
    for experiment in family.EXPERIMENTS
}
EXPERIMENTS: dict[str, Experiment] = {
    name: _FOUND[name] for name in (*ORDER, *(n for n in _FOUND if n not in ORDER))
}


def pick(names: list[str]) -> list[Experiment]:
    """The experiments with these names, or with a figure of the paper ("Figure 4"); InputError names the nearest."""
    names = [by_figure(name) or name for name in names]
    for name in names:
        if name not in EXPERIMENTS:
            raise InputError(f"no experiment {name!r}{nearest(name, EXPERIMENTS)} (--list shows all)")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def by_figure(name: str) -> str | None:
    """Return the experiment that reproduces "Figure 4", "figure-4" or "fig 4" of the paper; None of another name."""
    found = re.fullmatch(r"fig(?:ure|\.)?[ -]?(\d+)", name.strip().lower())
    if found is None:
        return None
    number = int(found[1])
    for experiment, numbers in FIGURES.items():
        if number in numbers:
            return experiment
    why = "a drawing without data" if number in DRAWINGS else "no figure of the paper that is reproduced"
    raise InputError(f"{name}: {why}; --list shows which figures are reproduced")


def in_paper(name: str) -> str:
    """Return "Figure 4", "Figures 8, 9", or "" where the paper has no numbered figure of an experiment."""
    numbers = FIGURES.get(name, ())
    return f"Figure{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}" if numbers else ""
