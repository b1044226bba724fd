"""The ways to a solution: a closed form, a solver, or training by steps; the one place that reads them off the keys."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigmapca_cli.settings.schema import Config


class Way(Enum):
    """How a run comes to its solution. The value of a solver's is its name (`solver.name`)."""

    DIRECT = "direct"
    NEWTON = "newton"
    MOMENTS = "moments"
    INDEPENDENCE = "independence"
    STEPS = "stochastic"

    @property
    def is_solver(self) -> bool:
        """Whether the main loss, or its like, is solved from the whole data; a closed form is no solver."""
        return self not in (Way.DIRECT, Way.STEPS)


def way_of(cfg: Config) -> Way:
    """Return the way that a configuration asks for."""
    return Way.DIRECT if cfg.model.kind == "direct" else Way(cfg.solver.name)


def way_stored(config: Mapping[str, Any]) -> Way:
    """Return the way of a stored configuration; what an old one does not say is what was so then."""
    if config.get("model", {}).get("kind") == Way.DIRECT.value:
        return Way.DIRECT
    return Way(config.get("solver", {}).get("name", Way.STEPS.value))
