"""`data.KEY=VALUE` behind a command that trains nothing: the same keys, spelled in the same way."""

from collections.abc import Sequence
from typing import Any

from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.system.errors import InputError


def data_keys(given: Sequence[str]) -> dict[str, Any]:
    """Return fields of the data group from arguments such as data.drop=[id,label]; InputError for anything else."""
    from dataclasses import fields

    from sigmapca_cli.composition.overrides import values
    from sigmapca_cli.data.config import DataConfig

    found = {}
    names = [f"data.{field.name}" for field in fields(DataConfig) if field.name != "path"]
    for key, value in values(given).items():
        key = "data.name" if key == "data" else key
        if key not in names:
            raise InputError(f"{key}: no such key{nearest(key, names)}; give data.KEY=VALUE")
        found[key.removeprefix("data.")] = value
    return found
