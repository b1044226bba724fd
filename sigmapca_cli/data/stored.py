"""The data of a stored run, described again by its configuration."""

import dataclasses
import glob
from pathlib import Path
from typing import Any

from sigmapca_cli.data.config import DataConfig, as_stored
from sigmapca_cli.system.errors import InputError


def data_of(run: Any) -> DataConfig:
    """Return the typed `data` group of a stored run, to read its data again from any folder.

    Raise InputError if it has a field unknown here.
    A relative data.path means a place below the folder in which the run was trained, where nothing lies here.
    """
    stored = as_stored(run.config.get("data", {}))
    known = {field.name for field in dataclasses.fields(DataConfig)}
    if unknown := sorted(set(stored) - known):
        raise InputError(f"the run's configuration has data.{unknown[0]}, which this version does not know")
    cfg, home = DataConfig(**stored), run.attrs.get("working_folder")
    if not home or cfg.path is None:
        return cfg
    several = isinstance(cfg.path, list | tuple)
    moved = [str(moved_to(home, place)) for place in (cfg.path if several else [cfg.path])]
    return dataclasses.replace(cfg, path=moved if several else moved[0])


def moved_to(home: str, place: str) -> str:
    """Return a file, folder or pattern as it is where something lies there or it is absolute, else below `home`."""
    path = Path(place).expanduser()
    there = Path(home) / path
    here = path.is_absolute() or path.exists() or glob.glob(str(path))
    return place if here or not (there.exists() or glob.glob(str(there))) else str(there)
