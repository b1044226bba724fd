"""Metrics while a run goes on: columns in memory, lines of JSON on disk."""

import contextlib
import json
import math
import os
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable
from sigmapca_cli.system.untrusted_files import read_bytes, reader


class MetricTable:
    """Columns that grow by rows; a value not logged at a step is nan there."""

    def __init__(self) -> None:
        self.steps = array("q")
        self.columns: dict[str, array[float]] = {}

    def row(self, step: int, values: Mapping[str, float]) -> None:
        """Add one row, or complete the last row when it has the same step."""
        if not self.steps or self.steps[-1] != step:
            self.steps.append(step)
        last = len(self.steps) - 1
        for name, value in values.items():
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = array("d")
            missing = last - len(column)
            if missing > 0:
                column.extend([math.nan] * missing)
            if len(column) > last:
                column[last] = value
            else:
                column.append(value)

    def arrays(self) -> dict[str, np.ndarray]:
        """{"step": int64 (n,), name: float64 (n,)}."""
        n = len(self.steps)
        out = {"step": np.array(self.steps, dtype=np.int64)}
        for name, column in self.columns.items():
            out[name] = np.full(n, np.nan)
            out[name][: len(column)] = column
        return out


# One encoder: json.dumps would make a new one for each line.
_ENCODE = json.JSONEncoder(allow_nan=False).encode


def json_line(step: int, values: Mapping[str, float]) -> str:
    """One line of metrics.jsonl; JSON has no nan or infinity, so these become null."""
    try:
        return _ENCODE({"step": step, **values}) + "\n"
    except ValueError:
        finite = {k: v if math.isfinite(v) else None for k, v in values.items()}
        return _ENCODE({"step": step, **finite}) + "\n"


def read_metrics_jsonl(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a last line that is still being written, or was cut off, is left out."""
    rows = []
    lines = read_bytes(path).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(_row(line))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            if number == len(lines):
                break
            raise InputError(f"{path}: line {number} is not a line of metrics") from error
    return rows


def _row(line: bytes) -> dict[str, Any]:
    """Return one line as {"step": int, name: number or None}; raise ValueError and the like for anything else."""
    row = json.loads(line)
    step = row["step"]
    if isinstance(step, bool) or not isinstance(step, int) or abs(step) >= 1 << 63:
        raise ValueError("no step")
    named = {printable(k): None if v is None else float(v) for k, v in row.items() if k != "step"}
    return {"step": step, **named}


def latest(path: Path) -> tuple[int | None, dict[str, float]]:
    """(last step, {name: its last finite value}) from the end of a metrics.jsonl, for listings."""
    try:
        with reader(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
            lines = file.read().splitlines()
    except (OSError, InputError):  # `read_metrics_jsonl` says what is wrong with it
        return None, {}
    step: int | None = None
    values: dict[str, float] = {}
    for line in lines:
        # Cut at either end, or no metrics at all.
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
            row = _row(line)
            step = row.pop("step")
            values.update({name: value for name, value in row.items() if value is not None})
    return step, values
