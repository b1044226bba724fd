"""Closed forms, and other libraries' algorithms, as a method of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sigmapca_cli.config import Config
from sigmapca_cli.methods.direct import DirectMethod
from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.runner.contracts import Facts, SolvedMethod
from sigmapca_cli.sources.base import Source


@dataclass(frozen=True)
class Direct(SolvedMethod):
    """A method of `methods.direct`."""

    method: DirectMethod
    kind: ClassVar[str] = "direct"

    @classmethod
    def build(cls, cfg: Config) -> Direct:
        """Raise InputError for a configuration that names no such method, or pieces that have no meaning here."""
        return cls(DirectMethod.build(cfg))

    def solve(self, cfg: Config, source: Source) -> tuple[Solution, Facts]:
        """Return the solution. A closed form has converged; an iteration says in `extra` whether it has."""
        return self.method.fit(cfg, source), {"converged": True, "relative_gradient": 0.0}
