"""Results of the benchmarks as docs/results/NAME.json; `sigmapca reproduce --write-docs` makes the pages of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"


def read(name: str) -> dict[str, Any]:
    """Return the stored results NAME, empty if there are none."""
    path = FOLDER / f"{name}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def keep(name: str, **found: Any) -> None:
    """Store what was found in place of older values under the same keys; the other keys stay."""
    text = json.dumps({**read(name), **found}, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")
