"""Groups of runs that repeat one setting, and the limits of what their agreement shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigmapca_cli.evaluation.compare import REPEATED, differing

FEW = 5
"""Number of runs below which unidentified axes often agree by chance."""


def by_setting(runs: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the runs (`StoredRun`) by their setting, such as "a=4 lr=0.01"; "" if all runs have the same."""
    differences = {n: v for n, v in differing([run.config for run in runs]).items() if n not in REPEATED}
    # Of keys that follow each other, such as a and nonlinearity.a, only the one of the shortest name is shown.
    distinct = {
        tuple(values): name for name, values in sorted(differences.items(), key=lambda item: -len(item[0]))
    }
    groups: dict[str, list[Any]] = {}
    for i, run in enumerate(runs):
        words = " ".join(
            f"{name}={values[i]}" for values, name in sorted(distinct.items(), key=lambda item: item[1])
        )
        groups.setdefault(words, []).append(run)
    return groups


def weaknesses(runs: Sequence[Any]) -> list[str]:
    """Return sentences about what the agreement of these runs does not show."""
    sentences = []
    starts = {start_of(run.config) for run in runs}
    if len(starts) == 1 and (start := starts.pop()):
        sentences.append(f"{start}: their agreement is no evidence")
    if left := sum(not run.attrs.get("converged", True) for run in runs):
        sentences.append(
            f"{left} of {len(runs)} runs have not converged: they may agree only because they are close to their start"
        )
    if len(runs) < FEW:
        sentences.append(
            f"only {len(runs)} runs: unidentified axes may agree by chance in so few; use {FEW} seeds or more"
        )
    return sentences


def start_of(config: Any) -> str:
    """Return why runs of this configuration on the same rows do not depend on the seed; "" if they do."""
    if config.get("data", {}).get("half", "all") != "all":
        return ""
    if config.get("model", {}).get("kind") == "direct" or config.get("solver", {}).get("name") in (
        "newton",
        "moments",
        "independence",
    ):
        return "these runs use no random numbers, so every seed gives the same result"
    if config.get("init") == "pca":
        return (
            "these runs start from the same filters (init=pca; init=orthogonal gives each run another start)"
        )
    if config.get("init") == "file":
        return "these runs start from the filters of one file"
    return ""
