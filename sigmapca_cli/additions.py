"""Keys that a `+` would add to the configuration: in no schema, so a typo. Refused before a folder is made."""

from dataclasses import fields, is_dataclass
from typing import Any

from sigmapca_cli.checks import nearest
from sigmapca_cli.conf_files import groups
from sigmapca_cli.config import known_keys
from sigmapca_cli.errors import InputError

OPEN = ("regularisers",)  # groups of keys that a user makes
# Of Hydra's own: settings of plugins, of logging and of the environment are not listed in its schema.
OPEN_HYDRA = (
    "launcher",
    "sweeper",
    "callbacks",
    "job_logging",
    "hydra_logging",
    "env",
    "defaults",
    "help",
    "hydra_help",
)


def refuse_unknown_additions(overrides: list[str]) -> None:
    """Raise InputError for `+typo=1` and `+hydra.typo=1`: nothing would read them."""
    for override in overrides:
        if not override.startswith("+"):
            continue
        key = override.lstrip("+").partition("=")[0].partition("@")[0]
        hydra = key.startswith("hydra.")
        if hydra and not _in_hydra(key.split(".")[1:]):
            raise InputError(f"{key}: no such key of Hydra's; `sigmapca train --info config` lists them")
        if hydra or "/" in key or not key or key.split(".")[0] in OPEN:
            continue
        known = [*known_keys(), *groups(), "experiment"]
        if key not in known:
            raise InputError(f"{key}: no such key{nearest(key, known)}; `sigmapca train --help` lists them")


def _in_hydra(parts: list[str]) -> bool:
    """Return whether a dotted key below `hydra` is in Hydra's schema, or in a part of it that has no fixed keys."""
    from hydra.conf import HydraConf

    node: Any = HydraConf
    if parts[0] in OPEN_HYDRA:
        return True
    for part in parts:
        if not is_dataclass(node):
            return True  # a plain mapping
        found = {field.name: field for field in fields(node)}
        if part not in found:
            return False
        factory = found[part].default_factory
        node = factory if isinstance(factory, type) else type(found[part].default)
    return True
