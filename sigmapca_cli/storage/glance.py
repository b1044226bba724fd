"""A run as a table of many needs it: its summary and its configuration, a tenth of the time of all that it holds."""

import math
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from sigmapca_cli.storage import format as fmt
from sigmapca_cli.storage.files import read_whole, unsurveyed
from sigmapca_cli.storage.find import RunSummary
from sigmapca_cli.storage.read import StoredRun
from sigmapca_cli.system.untrusted_hdf5 import Budget, as_text, item_in


def glance(found: RunSummary) -> StoredRun:
    """Return a run with its attributes, its configuration, and the last value of each metric; arrays when asked for.

    Its evaluation has numbers and texts only. A run that has not ended is opened as `StoredRun.open` does. Raise
    InputError for a damaged file.
    """
    run = StoredRun(found.folder, found.folder / fmt.RUN_FILE)
    if found.attrs.get("status", fmt.RUNNING) == fmt.RUNNING:
        return StoredRun.open(found.folder)
    read_whole(run.path)
    config, overrides = texts_in(run.path, ("config", "overrides"))
    last = {name: np.array([math.nan if value is None else value]) for name, value in found.last.items()}
    vars(run).update(
        attrs=found.attrs,
        status=found.status,
        evaluation=found.evaluation,
        metrics=last,
        config_yaml=config,
        overrides=overrides.splitlines(),
    )
    return run


def is_whole(run: StoredRun) -> bool:
    """Return whether all that a run holds has been looked at."""
    return "_contents" in vars(run)


def texts_in(path: Path, names: Sequence[str]) -> list[str]:
    """Return texts at the top of an HDF5 file, "" for one that it lacks. Raise InputError for a damaged file."""
    texts = []
    with unsurveyed(path) as file:
        root = h5py.h5g.open(file.id, b"/")
        for name in names:
            item = item_in(root, name.encode()) if name.encode() in root else None
            value = "" if item is None or item.shape != () else Budget(0).read(h5py.Dataset(item.id))[()]
            texts.append(as_text(value))
    return texts
