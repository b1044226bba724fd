"""Which a, or λ, the rows of a data file support: what `sigmapca data` says beside its advice."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigmapca_cli.data.describe.suggestion import Suggestion

LARGEST = 1e8
"""Rows × k³, or twice the values, up to which `sigmapca data` follows the path itself: about two seconds."""


def support(facts: dict[str, Any], suggestion: Suggestion | None) -> dict[str, Any]:
    """Return the sentence on a or λ ("support"), and the command with the a that the halves agree on.

    facts, suggestion: what `data.describe` returns. Light tails have no path over a: λ is followed instead.
    """
    if suggestion is None or suggestion.a is None:
        return {}
    k = suggestion.k if isinstance(suggestion.k, int) else 32
    if k < 2:
        return {}
    along = "a" if suggestion.a == 4 else "lam"
    if facts.get("patch_shape") is not None or work(facts, k) > LARGEST:
        return {
            "support": f"sigmapca path {shlex.join(suggestion.problem)} --along {along} (seconds to minutes)"
        }
    sentence, values = followed(suggestion.problem, along)
    found = {"support": sentence}
    if along == "a" and values and 4.0 not in values:
        found["command"] = suggestion.with_a(min(values)).text
    return found


def work(facts: dict[str, Any], k: int) -> float:
    """Return what a path costs: moments of the components, and reading the features."""
    return float(facts["samples"] * max(k**3, 2 * facts["features"]))


def followed(data: tuple[str, ...], along: str) -> tuple[str, list[float]]:
    """Follow a short path on two halves of the rows; return its sentence, and the values that beat linear PCA."""
    from sigmapca_cli.cli.path import followed as follow_short
    from sigmapca_cli.composition.compose import compose_job
    from sigmapca_cli.data.describe.describe import silence_warnings
    from sigmapca_cli.data.halves import halves_of
    from sigmapca_cli.evaluation import paths
    from sigmapca_cli.solvers.fourth_moments import path as follow
    from sigmapca_cli.system.errors import SigmapcaError

    try:
        with silence_warnings():
            cfg = compose_job(data).cfg
            made = halves_of(cfg.data)
            _, knots, halves, k = follow_short(cfg, along, made)
            more = paths.beside(follow_short(cfg, along)[0]) if made.by_time else ""
    except SigmapcaError as problem:
        return f"could not be tried on two halves: {problem}", []
    limit, pca = follow.span(halves), follow.agreement(halves, None)
    better = follow.best(knots).agreement > pca + follow.CLOSE
    sentence = paths.sentence(along, knots, pca, limit, k)
    return f"{made.words}: {sentence}{more}", paths.supported(knots, limit, k) if better else []
