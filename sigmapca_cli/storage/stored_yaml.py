"""The configuration inside a run file: values only, whoever wrote it."""

import functools
import json
import pickle
import re
from pathlib import Path
from typing import Any

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT

KEY = re.compile(r"^(?=\w[\w.]*:[ \n])", re.MULTILINE)
"""Where a key of the top level begins."""
SHORT = 4096
"""Characters of the lines of a key up to which what they mean is kept."""


def stored_yaml(text: str, path: Path) -> dict[str, Any]:
    """Return the mapping that a stored configuration is; an empty one where the text is no mapping.

    Raises InputError for what no configuration of this program holds: tags (they can build objects), aliases (a few
    lines can stand for gigabytes), interpolations such as ${oc.env:HOME} (OmegaConf would read the environment), more
    than 1 MiB, and what is not YAML.
    """
    import yaml

    if len(text) > NOTE_LIMIT:
        raise InputError(f"{path}: the configuration inside is longer than {NOTE_LIMIT} characters")
    try:
        loaded = by_key(text)
        if loaded is None:
            loaded = _loaded(text)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: the configuration inside is not YAML") from error
    except Interpolated:
        raise InputError(
            f"{path}: the configuration inside has an interpolation: it is not read further"
        ) from None
    return loaded if isinstance(loaded, dict) else {}


class Interpolated(Exception):
    """A configuration has an interpolation."""


def by_key(text: str) -> dict[str, Any] | None:
    """Return a mapping key by key, whose lines many runs have in common; None for a text that is no plain mapping."""
    import yaml

    first, *parts = KEY.split(text)
    if first or not parts:
        return None
    found: dict[str, Any] = {}
    for part in parts:
        try:
            one = pickle.loads(_pickled(part)) if len(part) <= SHORT else _loaded(part)
        except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):
            return None
        if not isinstance(one, dict) or len(one) != 1 or not one.keys().isdisjoint(found):
            return None
        found |= one
    return found


@functools.lru_cache(4096)
def _pickled(text: str) -> bytes:
    """Return what a text means, for copies."""
    return pickle.dumps(_loaded(text))


def _loaded(text: str) -> Any:
    """Return what a text means. Raise an error of YAML, ValueError for an alias, and Interpolated."""
    import yaml

    if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
        raise ValueError("an alias")
    loaded = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # libyaml: ten times as quick
    if "${" in json.dumps(loaded, default=str):
        raise Interpolated
    return loaded
