"""Keys that older versions had: what took their place, so that what they stored still reads and is the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gone:
    """A key that is gone. It changed where or how a run was computed, never what, so the hash leaves it out.

    usual: values at which its run is computed today as it was then. instead: what takes the place of the others.
    """

    usual: tuple[Any, ...]
    instead: str


GONE: dict[str, Gone] = {"backend": Gone(("auto", "numpy"), "NumPy makes the steps now")}
"""Dotted key: what is known of it."""


def without_gone(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a stored configuration without the keys that are gone."""
    return {
        key: without_gone(value, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in config.items()
        if f"{prefix}{key}" not in GONE
    }


def replaced(config: Mapping[str, Any], attrs: Mapping[str, Any]) -> list[str]:
    """Return, for each key by which a run was computed in a way that is gone, what takes the place of that way.

    An attribute of the run of the same name says what it did; else its configuration says what it was to do.
    """
    lines = []
    for key, gone in GONE.items():
        found: Any = config
        for name in key.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        value = attrs.get(key) or found
        if value is not None and value not in gone.usual:
            lines.append(f"{key}={value} is gone: {gone.instead}, and the last bits may differ")
    return lines
