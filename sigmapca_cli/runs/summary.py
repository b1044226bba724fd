"""The one-line summary behind run.h5: root attributes, last metrics and scalar evaluations, as JSON."""

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sigmapca_cli.runs.files import read_note, reading, unreadable


def plain(value: Any) -> Any:
    """A numpy or h5py value as JSON can hold it; nan and infinities become None."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def summarise(file: h5py.File) -> dict[str, Any]:
    """attrs {name: value}, last {metric: finite value}, step, evaluation {name: scalar}, shape [p, k]."""
    attrs = {name: plain(value) for name, value in file.attrs.items()}
    last: dict[str, Any] = {}
    step = None
    for name, data in file.get("metrics", {}).items():
        values = data[-64:]
        if name == "step":
            step = int(values[-1]) if len(values) else None
        else:
            finite = values[np.isfinite(values)]
            last[name] = float(finite[-1]) if len(finite) else None
    evaluation = {}
    for name, data in file.get("evaluation", {}).items():
        if isinstance(data, h5py.Dataset) and data.shape == ():
            evaluation[name] = plain(data[()])
    shape = list(file["filters"].shape) if "filters" in file else None
    return {"attrs": attrs, "last": last, "step": step, "evaluation": evaluation, "shape": shape}


def summary_text(file: h5py.File) -> str:
    """The summary as one line of text."""
    return json.dumps(summarise(file))


def read_summary(path: Path) -> dict[str, Any]:
    """The summary behind the file, or one made from the file where another program has changed it."""
    text = read_note(path)
    if text is not None:
        try:
            return json.loads(text)
        except ValueError as error:
            raise unreadable(path, error) from error
    with reading(path) as file:
        return summarise(file)
