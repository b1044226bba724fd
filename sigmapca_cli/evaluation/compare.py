"""Comparison of runs: settings that differ, metrics, their agreement, and what that shows and what it does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigmapca_cli.evaluation.agreement import agreement_matrix, matched_cosine
from sigmapca_cli.evaluation.metrics import Array
from sigmapca_cli.evaluation.stability import Stability, stability
from sigmapca_cli.settings.gone_keys import without_gone
from sigmapca_cli.settings.identity import COMPARED_APART
from sigmapca_cli.system.errors import InputError

ENOUGH_RUNS = 5
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
    if len(runs) < ENOUGH_RUNS:
        sentences.append(
            f"only {len(runs)} runs: unidentified axes may agree by chance in so few; use {ENOUGH_RUNS} seeds or more"
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
    alike = data.get("half", "all") == "all" and data.get("part") is None
    solver, direct = config.get("solver", {}).get("name"), config.get("model", {}).get("kind") == "direct"
    if alike and (direct or solver in ("newton", "moments", "independence")):
        return "these runs use no random numbers, so every seed gives the same result"
    if alike and config.get("init") == "pca":
        return (
            "these runs start from the same filters (init=pca; init=orthogonal gives each run another start)"
        )
    return "these runs start from the filters of one file" if config.get("init") == "file" else ""


METRICS = ("explained_variance", "reconstruction_error", "mcc", "orthogonality_error", "correlation")
#: Settings in which repetitions of one experiment differ.
REPEATED = ("seed", "data.half", "data.part", "recipe")


@dataclass(frozen=True)
class Comparison:
    """Comparison of r runs.

    names: those of the runs; settings and metrics: for each name a list of one value per run, only settings that
    differ; agreement (r, r) and its chance level, None if the runs have different features; stability, None for
    fewer than three runs and for runs of different settings; tests: what the agreement tests (`tested_by`).
    """

    names: list[str]
    settings: dict[str, list[str]]
    metrics: dict[str, list[float]]
    agreement: Array | None
    chance: float | None
    stability: Stability | None
    tests: str

    @property
    def reproducible(self) -> np.ndarray:
        """Which components come back in runs that may differ, (k,); none for runs that cannot, and no stability."""
        if self.stability is None or self.tests == "nothing":
            return np.zeros(0 if self.stability is None else len(self.stability.index), bool)
        return self.stability.reproducible

    @property
    def verdict(self) -> str:
        """How many components come back, and what this tests; "" without a stability."""
        if self.stability is None:
            return ""
        good = self.reproducible
        return in_words(int(good.sum()), len(good), len(self.names), self.stability.mean, self.tests)

    def plain(self) -> dict[str, Any]:
        """Return the comparison for JSON: nan as None, arrays as lists."""
        metrics = {
            name: [None if math.isnan(v) else v for v in values] for name, values in self.metrics.items()
        }
        result: dict[str, Any] = {"runs": self.names, "settings": self.settings, "metrics": metrics}
        if self.agreement is not None:
            result |= {"agreement": self.agreement.tolist(), "agreement_chance": self.chance}
        if self.stability is not None:
            found = self.stability
            result["tests"] = self.tests
            result["stability"] = {"index": found.index.tolist(), "reproducible": self.reproducible.tolist()}
        return result


def compare(runs: Sequence[Any]) -> Comparison:
    """Compare two or more runs (as `storage.read.StoredRun`); raise InputError for fewer, or if one has no filters."""
    if len(runs) < 2:
        raise InputError("compare needs two or more runs")
    for run in runs:
        if run.filters is None:
            raise InputError(f"{run.name}: this run has no filters yet (status {run.status})")
    filters = [np.asarray(getattr(run, "directions", run.filters), dtype=np.float64) for run in runs]
    alike = len({len(W) for W in filters}) == 1
    settings = differing([run.config for run in runs])
    repeated = alike and len(runs) > 2 and not set(settings) - set(REPEATED)
    return Comparison(
        names=[run.name for run in runs],
        settings=settings,
        metrics=table([run.evaluation for run in runs]),
        agreement=agreement_matrix(filters) if alike else None,
        chance=_chance(filters) if alike else None,
        stability=stability(filters) if repeated else None,
        tests=tested_by(runs),
    )


def differing(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the settings, by dotted name, that differ between the configurations; "–" for a missing setting."""
    each = {key: {repr(config.get(key, ...)) for config in configs} for key in set().union(*configs)}
    # Whole groups are looked at first: there may be many runs.
    kept = {key for key, values in each.items() if len(values) > 1}
    flat = [
        flattened(without_gone({key: value for key, value in config.items() if key in kept}))
        for config in configs
    ]
    names = sorted({name for config in flat for name in config if name.split(".")[0] not in COMPARED_APART})
    values = {name: [_written(config.get(name, "–")) for config in flat] for name in names}
    return {name: row for name, row in values.items() if len(set(row)) > 1}


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


def _written(value: Any) -> str:
    """Return a setting as text; 4 and 4.0 give the same text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return str(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted name: {"data": {"n": 5}} as {"data.n": 5}."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def table(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the `METRICS` that at least one run has, nan for a run without it, and the mean |kurtosis|."""
    rows = {name: [float(e.get(name, math.nan)) for e in evaluations] for name in METRICS}
    rows["mean |kurtosis|"] = [
        float(np.mean(np.abs(e["kurtosis"]))) if "kurtosis" in e else math.nan for e in evaluations
    ]
    return {name: row for name, row in rows.items() if not all(map(math.isnan, row))}


def _chance(filters: Sequence[Array]) -> float:
    sizes = [W.shape[1] for W in filters]
    return matched_cosine(len(filters[0]), max(sizes), min(sizes))
