"""The configuration inside a run file: values only, whoever wrote it."""

import json
from pathlib import Path
from typing import Any

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import NOTE_LIMIT


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
        if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise ValueError("an alias")
        loaded = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # libyaml: ten times as quick
        resolved = "${" not in json.dumps(loaded, default=str)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: the configuration inside is not YAML") from error
    if not resolved:
        raise InputError(f"{path}: the configuration inside has an interpolation: it is not read further")
    return loaded if isinstance(loaded, dict) else {}
