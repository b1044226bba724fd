"""Which a, or λ, the rows of a data file support: what `sigmapca data` says beside its advice."""

import shlex
from typing import Any

LARGEST = 1e8
"""Rows × k³, or twice the values, up to which `sigmapca data` follows the path itself: about two seconds."""
SCALES = (float("inf"), 10.0, 6.0, 4.0, 3.0, 2.0)
LAMS = (0.01, 0.03, 0.1, 0.33, 1.0)


def support(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the sentence on a or λ ("support"), and the command with the a that the halves agree on.

    facts: what `sources.describe.describe` returns. Light tails have no path over a: λ is followed instead.
    """
    words = shlex.split(facts.get("command") or "")[2:]
    given = next((word[2:] for word in words if word.startswith("k=")), "auto")
    k = int(given) if given.isdecimal() else 32
    along = "a" if "a=4" in words else "lam"
    data = [word for word in words if not word.startswith(("a=", "solver=", "model="))]
    if not words or k < 2 or "model=pca_svd" in words:
        return {}
    if facts.get("patch_shape") is not None or work(facts, k) > LARGEST:
        return {"support": f"sigmapca path {shlex.join(data)} --along {along} (seconds to minutes)"}
    sentence, values = followed(tuple(data), along)
    found = {"support": sentence}
    if along == "a" and values and 4.0 not in values:
        found["command"] = facts["command"].replace(" a=4 ", f" a={min(values):g} ")
    return found


def work(facts: dict[str, Any], k: int) -> float:
    """Return what a path costs: moments of the components, and reading the features."""
    return float(facts["samples"] * max(k**3, 2 * facts["features"]))


def followed(data: tuple[str, ...], along: str) -> tuple[str, list[float]]:
    """Follow a short path on two halves of the rows; return its sentence, and the values that beat linear PCA."""
    from sigmapca_cli.cli.path import prepared
    from sigmapca_cli.errors import SigmapcaError
    from sigmapca_cli.evaluation import paths
    from sigmapca_cli.reproduce.work import composed
    from sigmapca_cli.solvers import path as follow
    from sigmapca_cli.sources.describe import silence_warnings

    try:
        with silence_warnings():
            halves, _, k = prepared(composed(data).cfg)
            steps = follow.over_a(halves, SCALES) if along == "a" else follow.over_lam(halves, LAMS)
            knots = list(steps)
    except SigmapcaError as problem:
        return f"could not be tried on two halves of the rows: {problem}", []
    limit, pca = follow.span(halves), follow.agreement(halves, None)
    better = follow.best(knots).agreement > pca + follow.CLOSE
    sentence = paths.sentence(along, knots, pca, limit, k)
    return f"two halves of the rows: {sentence}", paths.supported(knots, limit, k) if better else []
