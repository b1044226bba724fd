"""What a tracker is told about a run, and what it can be asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Rows = Sequence[tuple[int, Mapping[str, float]]]
"""(step, {name: value}) in rising order of steps; a value that is not finite is left out by the trackers."""


@dataclass(frozen=True)
class Tracked:
    """A run as trackers see it.

    name: for people; key: 16 hexadecimal digits, the same whenever this run goes on; group: the sweep, or "";
    config: dotted key to value; known: the id that this tracker gave the run earlier, or ""; resumed: the step after
    which the run goes on, None at its beginning; seen: the last step that an earlier process may have logged, or −1;
    place: where to log instead of the tracker's own place, or ""; outputs: the folder of all runs.
    """

    name: str
    folder: Path
    key: str
    group: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()
    note: str = ""
    known: str = ""
    resumed: int | None = None
    seen: int = -1
    place: str = ""
    outputs: Path = Path("outputs")


class Tracker(Protocol):
    """An open curve. `id`: by which it can be gone on with. Any method may raise anything: see `hub`."""

    id: str

    def log(self, rows: Rows) -> None:
        """Append values to the curves."""

    def finish(self, status: str, results: Mapping[str, float]) -> None:
        """Store the results, say how the run ended (finished, failed, interrupted), and close."""


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a configuration with dotted keys and no mappings in it."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found
