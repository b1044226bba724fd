"""From an open run to its solution: a closed form, a solver, or stochastic training."""

from sigmapca_cli.methods.solution import Solution
from sigmapca_cli.processes import blas
from sigmapca_cli.runner.contracts import Facts, SolvedMethod
from sigmapca_cli.runner.open_run import OpenRun
from sigmapca_cli.signals import Guard


def solve(opened: OpenRun, guard: Guard) -> tuple[Solution, Facts]:
    """Return the solution of a run, and what is to be stored about how it was found."""
    with blas(opened.threads):
        if isinstance(opened.method, SolvedMethod):
            solution, facts = opened.method.solve(opened.job.cfg, opened.source)
            return solution, {**facts, **solution.extra}
        from sigmapca_cli.runner import stochastic

        return stochastic.solve(opened, guard)
