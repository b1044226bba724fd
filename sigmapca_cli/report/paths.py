"""Paths over τ, a or λ that `sigmapca path -o STEM` left beside the runs, as sections of a report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.report.charts import Series, colours, up_to_one
from sigmapca_cli.report.page import Picture, Pictures, Text
from sigmapca_cli.system.text import printable

MOST_BYTES = 1_000_000
"""Bytes of a file that can be a path."""
MOST_PATHS = 12
"""Paths on one page."""
FOLLOWED = {
    "tau": "τ, weight of the negentropies",
    "a": "a, scale of the nonlinearity",
    "lam": "λ, weight of the fourth cumulants",
}
"""What a path follows; λ is of paths that older versions left."""


@dataclass(frozen=True)
class StoredPath:
    """One path: what it runs along, the values and agreements of its knots, linear PCA, the span, and its sentence."""

    name: str
    along: str
    at: np.ndarray
    agreement: np.ndarray
    pca: float
    span: float
    sentence: str


def found_in(folders: Iterable[Path]) -> list[StoredPath]:
    """Return the paths in these folders, in order; a file that is none is passed over."""
    places = dict.fromkeys(folder.resolve() for folder in folders)
    seen = dict.fromkeys(file.resolve() for folder in places for file in sorted(folder.glob("*.json")))
    return [path for path in map(read, seen) if path is not None][:MOST_PATHS]


def read(file: Path) -> StoredPath | None:
    """Return the path in a file, or None if the file holds none."""
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        facts = json.loads(file.read_text("utf-8"))
        knots = [(float(knot["at"]), float(knot["agreement"])) for knot in facts["knots"]]
        along, pca, span = facts["along"], float(facts["linear_pca"]), float(facts["span"])
        sentence = printable(str(facts.get("sentence", "")))[:500]
        name = f"{printable(str(facts.get('data', file.stem)))[:60]}, k = {int(facts['k'])}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    numbers = np.array(knots, dtype=float).reshape(-1, 2)
    if along not in FOLLOWED or not len(numbers) or not np.isfinite([*numbers[:, 1], pca, span]).all():
        return None
    if np.isnan(numbers[:, 0]).any() or (numbers[:, 0] <= 0).any():
        return None
    return StoredPath(name, along, numbers[:, 0], numbers[:, 1], pca, span, sentence)


def blocks(paths: Sequence[StoredPath]) -> list[Any]:
    """Return a sentence and a chart for each path."""
    found: list[Any] = []
    for path in paths:
        found.append(Text(f"Path over {path.along} of {path.name}. {path.sentence}"))
        if chart := drawn(path):
            names = ("halves", "linear PCA", "span of the two subspaces")
            found.append(Pictures([Picture(chart, "", svg=True)], list(zip(colours(3), names, strict=True))))
    return found


def drawn(path: StoredPath) -> str | None:
    """Return the chart of a path; a = ∞ stands at twice the largest finite a."""
    finite = path.at[np.isfinite(path.at)]
    at = np.where(np.isfinite(path.at), path.at, 2 * finite.max(initial=1.0))
    order = np.argsort(at)
    ends = np.array([at.min(), at.max()])
    own, linear, limit = colours(3)
    lines = [
        Series(at[order], path.agreement[order], own, "halves", None, True),
        Series(ends, np.full(2, path.pca), linear, "linear PCA"),
        Series(ends, np.full(2, min(path.span, 1.0)), limit, "span of the two subspaces"),
    ]
    infinite = " (∞ at the right end)" if math.inf in path.at.tolist() else ""
    return up_to_one(
        lines,
        f"{FOLLOWED[path.along]}{infinite}, log scale",
        "agreement of halves, matched |cos|",
        None,
        True,
    )
