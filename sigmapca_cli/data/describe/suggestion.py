"""The command that trains on data that were described: how they are read and repaired, how many components, by what."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import DataConfig, usual_standardise
from sigmapca_cli.data.describe.task import Task
from sigmapca_cli.data.n_components import advised, none_stands_out
from sigmapca_cli.data.source import Source
from sigmapca_cli.settings.quoting import override

SOURCES = "hardly correlated, as sources are: mixed below; data.mix=false if they are microphones"
MICROPHONES = "correlated, as microphones are: not mixed; data.mix=true if they are sources"
WITHOUT_DIRECTIONS = Task(
    "alike",
    "no direction stands out: the variances are those of columns without any relation, so only shapes that are not "
    "Gaussian could tell components apart; the second command says whether they do. If it identifies none, these rows "
    "hold no components: take more rows, or other columns",
    then="sigmapca evaluate last --certificate",
)
UNRELATED = 0.1
"""Correlation of tracks below which they are taken for sources."""


@dataclass(frozen=True)
class Suggestion:
    """A command to train on a file.

    data: overrides that name the file and how it is read. cfg: the same as a data group. k: number of components; None:
    the model's own, for patches. why: the reason of this k. task: what the data ask for, and the method. source: the
    data as the command reads them.
    """

    data: tuple[str, ...]
    k: int | str | None
    why: str
    task: Task
    cfg: DataConfig
    source: Source

    @property
    def text(self) -> str:
        """The command as one line for the shell."""
        return shlex.join(["sigmapca", "train", *self.problem, *self.task.words])

    @property
    def other(self) -> str | None:
        """The command of the second method, if there is one."""
        if self.task.other is None:
            return None
        return shlex.join(["sigmapca", "train", *self.problem, *self.task.other[0]])

    @property
    def problem(self) -> tuple[str, ...]:
        """The overrides of the data and of k."""
        return self.data if self.k is None else (*self.data, f"k={self.k}")


def suggestion(
    facts: dict[str, Any], better: dict[str, Any], source: Source, path: str, options: dict[str, Any]
) -> Suggestion | None:
    """Return the command that trains on these data with `options`; k and the task are from `better`, the repaired data.

    source: the repaired data. None where there is nothing to learn.
    """
    if "components" not in better:
        return None
    defaults = {"standardise": usual_standardise(options["name"]), "mix": True}
    words = [f"data={options['name']}", override("data.path", path)]
    for key, value in options.items():
        if key != "name" and value not in (None, [], defaults.get(key)):
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
            words.append(override(f"data.{key}", value))
    cfg = DataConfig(path=path, **options)
    if better["task"].name == "patches":
        few = None if facts.get("patch_shape") else few_at_a_gap(better)
        few_or_all, why = few or (None, "32, or the rank if it is smaller")
        return Suggestion(tuple(words), few_or_all, why, better["task"], cfg, source)
    if are_alike(better):
        why = "all directions, because none stands out by its variance"
        return Suggestion(tuple(words), better["rank"], why, WITHOUT_DIRECTIONS, cfg, source)
    k, why = number_of_components(better)
    if "model=factor_analysis" in better["task"].words and isinstance(k, int) and k >= better["features"]:
        k, why = max(1, better["features"] - 1), "fewer factors than items, as each has a noise of its own"
    return Suggestion(tuple(words), k, why, better["task"], cfg, source)


def number_of_components(facts: dict[str, Any]) -> tuple[int | str, str]:
    """Return how many components to learn, and why; channels have as many sources unless the rest is clearly noise."""
    if "rank" not in facts:
        return "auto", "not all eigenvalues are computed: 32, or the rank if it is smaller"
    if facts.get("sample_rate") is not None:
        return few_at_a_gap(facts) or (facts["rank"], "as many sources as channels")
    return advised(facts["components"], facts["rank"], different_rows(facts))


def are_alike(facts: dict[str, Any]) -> bool:
    """Return whether no direction stands out by its variance, and nothing else that the page sees tells them apart."""
    if facts["task"].name not in ("table", "counts") or "rank" not in facts:
        return False
    return none_stands_out(facts["components"], facts["rank"], different_rows(facts))


def different_rows(facts: dict[str, Any]) -> int:
    """Return the number of rows that are samples: copies of others are none."""
    return int(facts.get("different_rows", facts["samples"]))


def few_at_a_gap(facts: dict[str, Any]) -> tuple[int, str] | None:
    """Return the least description length where the rest is clearly noise: at a gap, and below half the rank."""
    if "rank" not in facts:
        return None
    k, why = advised(facts["components"], facts["rank"], different_rows(facts))
    return (k, why) if 2 * k < facts["rank"] and k == facts["components"]["mdl"] else None


def tracks_in(source: Source, path: str) -> str | None:
    """Return what the tracks of a folder of sounds are taken for, and why; None of other data."""
    if source.name != "signals" or not Path(path).is_dir() or source.p < 2:
        return None
    C = np.asarray(source.covariance()[1])
    spread = np.sqrt(np.maximum(C.diagonal(), np.finfo(float).tiny))
    related = np.abs(C / np.outer(spread, spread) - np.eye(source.p)).max()
    return MICROPHONES if related > UNRELATED else SOURCES


def cleaning(facts: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the data group that leave out what is no data: codes, missing values, columns beside.

    Left out is what numbers, dates or times the rows, and what may be a class among measurements.
    """
    found: dict[str, Any] = {}
    if facts.get("tracks") == SOURCES and options.get("mix") is False:
        found["mix"] = True
    if codes := facts.get("codes"):
        found["missing_codes"] = [int(code) if code == int(code) else code for code in codes]
    if facts.get("missing_values") or codes:
        few = not codes and facts["missing_rows"] < 0.05 * facts["samples"]
        found["missing"] = "drop" if few else "mean"
    if facts.get("subject") is not None and not options.get("subject") and not options.get("transpose"):
        found["subject"] = facts["subject"]
    beside = [*facts.get("labels", []), *facts.get("rising", [])]
    if beside and not options.get("transpose"):
        before = options.get("drop") or []
        found["drop"] = [*before, *(in_file(one, before) if isinstance(one, int) else one for one in beside)]
    return found


def in_file(feature: int, left_out: Sequence[Any]) -> int:
    """Return the number of a column in the file, from its number among those that are read."""
    for place in sorted(int(one) for one in left_out):
        feature += place <= feature
    return feature


def weighing(facts: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the data group that treat columns beside items, scales and outliers.

    Curves keep their common scale.
    """
    found: dict[str, Any] = {}
    if beside := facts.get("beside_items"):
        found["drop"] = [*(options.get("drop") or []), *beside]
    task = facts["task"].name if "task" in facts else ""
    if task == "items" or (facts.get("scales") and task not in ("spectra", "separation")):
        found["standardise"] = "feature"
    if facts.get("outliers") and options["name"] == "array":
        found["clip"] = 0.001
    return found
