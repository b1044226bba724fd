"""All experiments by name: the paper's in its order, then those that are in no paper."""

from __future__ import annotations

from sigmapca_cli.reproduce import images, losses, points, settings, signals, tables, theory
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

_FOUND = {
    experiment.name: experiment
    for family in (images, settings, losses, signals, points, tables, theory)
    for experiment in family.EXPERIMENTS
}
EXPERIMENTS: dict[str, Experiment] = {
    name: _FOUND[name] for name in (*ORDER, *(n for n in _FOUND if n not in ORDER))
}


def pick(names: list[str]) -> list[Experiment]:
    """The experiments with these names; InputError names the nearest one."""
    for name in names:
        if name not in EXPERIMENTS:
            raise InputError(f"no experiment {name!r}{nearest(name, EXPERIMENTS)} (--list shows all)")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]
