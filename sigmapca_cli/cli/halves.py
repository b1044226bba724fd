"""Do two halves of the data agree on the components? What `sigmapca data` says beside its command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from sigmapca_cli.system.errors import InputError, SigmapcaError

if TYPE_CHECKING:
    from sigmapca_cli.data.describe.suggestion import Suggestion
    from sigmapca_cli.data.halves import Halves

SOLVED_AT_ONCE = 1e7
"""Rows × (k² + features) up to which `sigmapca data` solves two halves itself: about a second."""
STEPS = 50
"""Number of steps at most. Solutions that halves agree on take fewer; where halves of 300 rows agree on 50 components
as chance does, 100 to 200 further steps change the agreement by .02 at most."""


def halves(facts: dict[str, Any], suggestion: Suggestion | None) -> dict[str, Any]:
    """Return what two halves of the rows agree on ("halves", a sentence), or the command that finds out.

    facts, suggestion: what `data.describe` returns. Rows in time are halved into two stretches, and every second row is
    shown beside: those rows are nearly the same sample.
    """
    from sigmapca_cli.data.describe.describe import silence_warnings
    from sigmapca_cli.data.halves import EVERY_SECOND, halves_of

    if suggestion is None or not isinstance(suggestion.k, int) or suggestion.k < 2:
        return {}
    if suggestion.task.name == "items":
        return {}  # the axes of factors are chosen by a rotation: `loadings --halves` compares them
    if facts["samples"] * (suggestion.k**2 + facts["features"]) > SOLVED_AT_ONCE:
        return {
            "halves": f"sigmapca path {shlex.join(suggestion.problem)} compares two halves (seconds to minutes)"
        }
    try:
        with silence_warnings():
            cfg = suggestion.cfg
            made = halves_of(cfg, suggestion.source)
            sentence = f"{made.words}: {agreeing(cfg, made, suggestion.k)}"
            if made.by_time:
                sentence += f"; every second row: {agreeing(cfg, EVERY_SECOND, suggestion.k)}"
    except SigmapcaError as problem:
        return {"halves": f"could not be tried: {problem}"}
    return {"halves": sentence}


def agreeing(cfg: Any, made: Halves, k: int) -> str:
    """Return how well the components of two halves agree, by the mean matched |cos|, beside linear PCA and chance."""
    from sigmapca_cli.data import build
    from sigmapca_cli.evaluation.agreement import agreement
    from sigmapca_cli.solvers.independence.fit import independence_fit

    sources = [build(half) for half in made.configs(cfg)]
    axes = [source.leading_axes(k) for source in sources]
    k = min(k, *(one.rank for one in axes))
    if not k:
        raise InputError("all rows of a half are equal")
    found = agreement(*(independence_fit(source, k, max_iter=STEPS)[0].W for source in sources))
    linear = agreement(*(one.up_to(k) for one in axes))
    return f"components agree {found.mean:.3f}, linear PCA {linear.mean:.3f}, chance {found.chance:.2f}"
