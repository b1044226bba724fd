"""`data.KEY=VALUE` behind a command that is no Hydra job: the same keys, spelled in the same way."""

from collections.abc import Sequence
from typing import Any


def data_keys(given: Sequence[str]) -> dict[str, Any]:
    """Fields of the data group from arguments such as data.drop=[id,label]; InputError for anything else."""
    from sigmapca_cli.checks import nearest
    from sigmapca_cli.errors import InputError
    from sigmapca_cli.solution.new_rows import known_fields

    found = {}
    names = [f"data.{name}" for name in known_fields() if name != "path"]
    for text in given:
        key, sign, _ = text.partition("=")
        key = "data.name" if key == "data" else key
        if not sign or key not in names:
            raise InputError(f"{text}: no such key{nearest(key, names)}; give data.KEY=VALUE")
        found[key.removeprefix("data.")] = value_of(text)
    return found


def value_of(text: str) -> Any:
    """The value of one override, as Hydra reads it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from sigmapca_cli.errors import InputError

    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException as problem:
        raise InputError(
            f"{text}: cannot be read ({str(problem).splitlines()[0]}); quote the value"
        ) from None
    if override.is_sweep_override():
        raise InputError(f"{text}: a list stands in brackets, as in data.drop=[a,b]")
    return override.value()
