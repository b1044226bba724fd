"""How long the experiments take: CPU minutes on one core, measured by benchmarks/minutes.py."""

from __future__ import annotations

import json
from pathlib import Path

PLACE = Path(__file__).with_name("minutes.json")
Minutes = dict[str, dict[str, float]]


def read() -> Minutes:
    """Return {experiment: {"quick" or "full": CPU minutes}} of those that were measured."""
    found: Minutes = json.loads(PLACE.read_text("utf-8")) if PLACE.exists() else {}
    return found


def in_words(found: dict[str, float]) -> str:
    """Return "2 min, quick 0.3 min", or what of both is known."""
    full = f"{found['full']:g} min" if "full" in found else ""
    quick = f"quick {found['quick']:g} min" if "quick" in found else ""
    return ", ".join(part for part in (full, quick) if part)
