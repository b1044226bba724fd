"""The data of a stored run, described again by its configuration."""

import dataclasses
from typing import Any

from sigmapca_cli.data.config import DataConfig, as_stored
from sigmapca_cli.system.errors import InputError


def data_config(config: dict[str, Any]) -> DataConfig:
    """Return the typed `data` group of a stored configuration; raise InputError if it has a field unknown here."""
    stored = as_stored(config.get("data", {}))
    known = {field.name for field in dataclasses.fields(DataConfig)}
    if unknown := sorted(set(stored) - known):
        raise InputError(f"the run's configuration has data.{unknown[0]}, which this version does not know")
    return DataConfig(**stored)
