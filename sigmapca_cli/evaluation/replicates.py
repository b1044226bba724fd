"""What the agreement of runs of one setting shows, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FEW = 5
"""Number of runs below which unidentified axes often agree by chance."""


def weaknesses(runs: Sequence[Any]) -> list[str]:
    """Return sentences about what the agreement of these runs does not show."""
    sentences = []
    if on_the_same_rows(runs):
        sentences.append(
            "these runs saw the same rows: their agreement tests the optimiser, not the data; to test the data train "
            "on parts of them: sigmapca train -m data.part=1/5,2/5,3/5,4/5,5/5 init=orthogonal …"
        )
    if shared := sum(int(run.attrs.get("copies_elsewhere", 0)) for run in runs):
        sentences.append(
            f"{shared} rows of these runs are copies of rows of the other parts: parts that share rows are no samples "
            "of their own, and their agreement is no evidence; keep each row once"
        )
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


def rows_of(run: Any) -> tuple[Any, ...]:
    """Return what tells the rows of a run from those of others of one setting: their hash, half, part and seed."""
    data = run.config.get("data", {})
    return run.attrs.get("data_hash"), data.get("half", "all"), data.get("part"), data.get("seed")


def on_the_same_rows(runs: Sequence[Any]) -> bool:
    """Return whether several runs were trained on the same rows."""
    return len(runs) > 1 and len({rows_of(run) for run in runs}) == 1


def tested_by(runs: Sequence[Any]) -> str:
    """Return what the agreement of runs tests: "the data", "the optimiser", or "nothing".

    It is the data if no two of them saw the same rows, and nothing if they cannot differ, or their parts share copies.
    """
    if any(run.attrs.get("copies_elsewhere", 0) for run in runs):
        return "nothing"
    if on_the_same_rows(runs) and all(start_of(run.config) for run in runs):
        return "nothing"
    return "the data" if len({rows_of(run) for run in runs}) == len(runs) else "the optimiser"


def in_words(good: int, components: int, runs: int, mean: float, tests: str) -> str:
    """Return how many components come back in so many runs, of this mean stability index, and what this tests."""
    if tests == "nothing":
        return f"{runs} runs whose agreement is no evidence (mean stability index {mean:.3f})"
    where = "on other rows each" if tests == "the data" else "on the same rows"
    return (
        f"{good} of {components} components come back in {runs} runs {where} (mean stability index {mean:.3f}): "
        f"this tests {tests}"
    )


def start_of(config: Any) -> str:
    """Return why runs of this configuration on the same rows do not depend on the seed; "" if they do.

    On parts of the rows the same start is no reason to agree, but for filters of a file, which all of them may keep.
    """
    data = config.get("data", {})
    if data.get("half", "all") != "all" or data.get("part") is not None:
        return "these runs start from the filters of one file" if config.get("init") == "file" else ""
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
