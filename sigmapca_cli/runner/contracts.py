"""The contracts of this room: a method that is solved at once, and what is known of how a solution was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sigmapca_cli.config import Config
from sigmapca_cli.errors import InputError
from sigmapca_cli.methods.config import refuse_unused
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.sources.base import Source
from sigmapca_cli.training.protocols import TrainedMethod

Facts = dict[str, Any]
"""What is stored in /evaluation of how a solution was found; `converged` is always among it."""


class SolvedMethod(ABC):
    """A method that is solved at once, from the whole data: direct, newton or moments."""

    kind: ClassVar[str]

    @abstractmethod
    def solve(self, cfg: Config, source: Source) -> tuple[Solution, Facts]:
        """Return the solution, and what is to be stored about how it was found."""


Method = TrainedMethod | SolvedMethod
"""What a configuration asks for. The `kind` of a TrainedMethod is "trained"."""


def refusal_of_solver(cfg: Config, solver: str, purpose: str) -> str | None:
    """Return why no solver can take a resolved configuration, or None. `purpose`: what this solver does."""
    if cfg.model.objective != "main":
        return f"solver={solver} {purpose}; train model={cfg.model.name} with solver=stochastic"
    try:
        refuse_unused(cfg.model)
    except InputError as problem:
        return str(problem)
    if cfg.ordering.name != "none":
        return f"solver={solver} orders by variance at the end; use ordering=none, or solver=stochastic"
    if cfg.regularisers:
        return f"solver={solver} knows no regularisers; drop them, or use solver=stochastic"
    if cfg.sigma.name not in ("batch", "ema", "data"):
        return f"solver={solver} takes sigma from the data, not sigma={cfg.sigma.name}; use sigma=data"
    return None
