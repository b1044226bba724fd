"""The configuration inside a run file: values only, whoever wrote it."""

from functools import cache
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.untrusted_files import NOTE_LIMIT


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
        loaded = yaml.load(text, _loader())
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: the configuration inside is not YAML") from error
    if found := _interpolation(loaded):
        raise InputError(
            f"{path}: the configuration inside is not resolved ({found[:40]}): it is not read further"
        )
    return loaded if isinstance(loaded, dict) else {}


@cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader without aliases."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias")
            return super().compose_node(parent, index)

    return Loader


def _interpolation(value: Any) -> str:
    """Return the first text with ${ in it, keys included; "" where there is none."""
    if isinstance(value, str):
        return value if "${" in value else ""
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    if isinstance(inner, list):
        return next((found for item in inner if (found := _interpolation(item))), "")
    return ""
