"""Which runs repeat one setting, so that their agreement says something, and what weakens what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigmapca_cli.evaluation.compare import REPEATED, differing

FEW = 5
"""Runs below which freely turning axes often look alike."""


def by_setting(runs: Sequence[Any]) -> dict[str, list[Any]]:
    """The runs (as `runs.read.Run`) of each setting, under its words, such as "a=4 lr=0.01"; "" where it is one."""
    differences = {n: v for n, v in differing([run.config for run in runs]).items() if n not in REPEATED}
    # What follows another key, such as nonlinearity.a does a, is not said twice.
    told = {
        tuple(values): name for name, values in sorted(differences.items(), key=lambda item: -len(item[0]))
    }
    found: dict[str, list[Any]] = {}
    for i, run in enumerate(runs):
        words = " ".join(
            f"{name}={values[i]}" for values, name in sorted(told.items(), key=lambda item: item[1])
        )
        found.setdefault(words, []).append(run)
    return found


def weaknesses(runs: Sequence[Any]) -> list[str]:
    """Sentences about what the agreement of these runs does not show."""
    found = []
    starts = {start_of(run.config) for run in runs}
    if len(starts) == 1 and (start := starts.pop()):
        found.append(f"{start}: that they agree does not confirm them")
    if left := sum(not run.attrs.get("converged", True) for run in runs):
        found.append(
            f"{left} of {len(runs)} runs have not converged: where they agree may be where they began"
        )
    if len(runs) < FEW:
        found.append(
            f"{len(runs)} runs are few: axes that turn freely agree by chance in so few; give {FEW} seeds or more"
        )
    return found


def start_of(config: Any) -> str:
    """How all runs of this configuration on the same rows begin alike, whatever their seed; "" where they do not."""
    if config.get("data", {}).get("half", "all") != "all":
        return ""
    if config.get("model", {}).get("kind") == "direct" or config.get("solver", {}).get("name") in (
        "newton",
        "moments",
    ):
        return "these runs take no random numbers, so that each seed gives the same"
    if config.get("init") == "pca":
        return "these runs start at the same place (init=pca); init=orthogonal gives each its own"
    if config.get("init") == "file":
        return "these runs start at the filters of a file"
    return ""
