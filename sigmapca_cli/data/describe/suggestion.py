"""The command that trains on data that were described: how they are read and repaired, how many components, which a."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.data.config import usual_standardise
from sigmapca_cli.data.n_components import at_a_gap
from sigmapca_cli.settings.quoting import override


@dataclass(frozen=True)
class Suggestion:
    """A command to train on a file.

    data: overrides that name the file and how it is read. k: number of components; None: the model's own, for patches.
    a: None for linear PCA.
    """

    data: tuple[str, ...]
    k: int | str | None
    a: float | str | None

    @property
    def text(self) -> str:
        """The command as one line for the shell."""
        words = ["sigmapca", "train", *self.problem]
        if self.k is None:
            return shlex.join([*words, f"a={self.a}"])
        return shlex.join(
            [*words, *(["model=pca_svd"] if self.a is None else [f"a={self.a}", "solver=newton"])]
        )

    @property
    def problem(self) -> tuple[str, ...]:
        """The overrides of the data and of k."""
        return self.data if self.k is None else (*self.data, f"k={self.k}")

    def with_a(self, a: float) -> "Suggestion":
        """Return the same command with another a."""
        return replace(self, a=f"{a:g}")


def suggestion(
    facts: dict[str, Any], better: dict[str, Any], path: str, options: dict[str, Any]
) -> Suggestion | None:
    """Return the command that trains on these data with `options`; k and a are from `better`, the repaired data.

    None where there is nothing to learn.
    """
    if "components" not in better:
        return None
    defaults = {"standardise": usual_standardise(options["name"]), "mix": not Path(path).is_dir()}
    words = [f"data={options['name']}", override("data.path", path)]
    for key, value in options.items():
        if key != "name" and value not in (None, [], defaults.get(key)):
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
            words.append(override(f"data.{key}", value))
    if facts.get("patch_shape") is not None:
        return Suggestion(tuple(words), None, 4 if better["a"] in (None, "auto") else better["a"])
    k = better.get("rank", "auto")
    if "95 %" in better["components"] and "rank" in better and facts.get("sample_rate") is None:
        # k must not cut through directions of equal variance: chance would choose among them.
        eigenvalues = np.array(better["components"]["eigenvalues"])
        k = at_a_gap(eigenvalues, better["components"]["95 %"], facts["samples"])
    return Suggestion(tuple(words), k, better["a"])


def remedies(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the data group that treat missing values, different scales and outliers."""
    options: dict[str, Any] = {}
    if facts.get("missing_values"):
        options["missing"] = "drop" if facts["missing_rows"] < 0.05 * facts["samples"] else "mean"
    if facts.get("scales"):
        options["standardise"] = "feature"
    if facts.get("outliers") and facts["kind"] == "array":
        options["clip"] = 0.001
    return options
