"""The one-line summary behind run.h5: root attributes, last metrics and scalar evaluations, as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.storage.files import read_note, reading, unreadable
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import printable, reason
from sigmapca_cli.system.untrusted_hdf5 import attributes

NUMBERS = ("seed", "threads", "n", "p", "wall_seconds", "peak_memory_bytes", "format_version", "processes")
TEXTS = ("format", "status", "model", "created", "finished", "config_hash", "data_hash", "device", "error")


def plain(value: Any) -> Any:
    """Return a numpy or h5py value as JSON can hold it; nan and infinities become None, control characters escapes."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, int | float | dict | None) else printable(str(value))


def summarise(file: h5py.File) -> dict[str, Any]:
    """attrs {name: value}, last {metric: finite value}, step, evaluation {name: scalar}, shape [p, k]."""
    scalars = {
        name: data[()]
        for name, data in file.get("evaluation", {}).items()
        if isinstance(data, h5py.Dataset) and data.shape == ()
    }
    shape = list(file["filters"].shape) if "filters" in file else None
    return summary_of(file, file.get("metrics", {}), scalars, shape)


def summary_of(
    file: h5py.File, metrics: Mapping[str, Any], evaluation: Mapping[str, Any], shape: Sequence[int] | None
) -> dict[str, Any]:
    """Return the summary of a file whose metrics (n,) each, scalar evaluations and shape of the filters are at hand."""
    last: dict[str, Any] = {}
    step = None
    for name, data in sorted(metrics.items()):
        values = data[-64:]
        if name == "step":
            step = int(values[-1]) if len(values) else None
        else:
            finite = values[np.isfinite(values)]
            last[name] = float(finite[-1]) if len(finite) else None
    return {
        "attrs": {name: plain(value) for name, value in attributes(file).items()},
        "last": last,
        "step": step,
        "evaluation": {name: plain(value) for name, value in sorted(evaluation.items())},
        "shape": None if shape is None else list(shape),
    }


def summary_text(file: h5py.File) -> str:
    """The summary as one line of text."""
    return json.dumps(summarise(file))


def read_summary(path: Path) -> dict[str, Any]:
    """The summary behind the file, or one made from the file where another program has changed it."""
    found = noted_summary(path)
    if found is not None:
        return found
    with reading(path) as file:
        made = summarise(file)
    return _checked(path, made)


def noted_summary(path: Path) -> dict[str, Any] | None:
    """The summary behind the file; None where another program has changed the file and so dropped it."""
    text = read_note(path)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from error
    return _checked(path, found)


def _checked(path: Path, found: Any) -> dict[str, Any]:
    """Return a summary whose values have the types that `summarise` gives; raise InputError otherwise."""
    try:
        step, shape = found["step"], found["shape"]
        return {
            "attrs": check_attrs(_flat(found["attrs"])),
            "last": {name: None if v is None else float(v) for name, v in _flat(found["last"]).items()},
            "step": None if step is None else int(step),
            "evaluation": _flat(found["evaluation"]),
            "shape": None if shape is None else [int(side) for side in shape],
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: damaged, its summary is none ({reason(error)})") from None


def _flat(values: Any) -> dict[str, Any]:
    """Return {name: number, text, list or None} with escapes for control characters; TypeError for deeper values."""
    for value in values.values():
        if isinstance(value, dict):
            raise TypeError("a value is a table")
    return {printable(name): plain(value) for name, value in values.items()}


def check_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the root attributes; raise ValueError where one that is a number, or a text, in every run is none here."""
    for name, value in attrs.items():
        if name in NUMBERS and ((isinstance(value, str) and value != "") or isinstance(value, list)):
            raise ValueError(f"{name} is no number")
        if name in TEXTS and not isinstance(value, str):
            raise ValueError(f"{name} is no text")
    return attrs
