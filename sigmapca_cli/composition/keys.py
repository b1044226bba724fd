"""Which keys were typed, and which ones the file of an experiment sets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.overrides import values
from sigmapca_cli.settings.schema import GROUPS
from sigmapca_cli.system.errors import InputError


def typed(words: Sequence[str]) -> dict[str, str]:
    """Return {dotted key: override} of overrides; of several of one key the last, which counts.

    The choice of a group stands under its name, as in solver.name. Hydra's own settings are left out.
    """
    found: dict[str, str] = {}
    for word in words:
        key, _, text = word.lstrip("+").partition("=")
        value: Any = text
        if text.lstrip().startswith("{"):  # the grammar of Hydra is slow, and only needed for these
            with contextlib.suppress(InputError):
                value = values([word])[key]
        if not key.startswith("hydra"):
            found.update(dict.fromkeys(dotted(key, value), word))
    return found


def dotted(key: str, value: Any) -> Iterator[str]:
    """Yield the dotted keys that one value of a key sets."""
    if isinstance(value, Mapping) and key in GROUPS:
        yield from (f"{key}.{name}" for name in value)
    else:
        yield f"{key}.name" if key in GROUPS else key


def of_experiment(name: str | None, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the dotted keys that the file of an experiment sets, with the experiments it begins from; () for none.

    folders: where configurations come from; the first that has it counts.
    """
    import yaml

    file = next((f for folder in folders if (f := folder / "experiment" / f"{name}.yaml").is_file()), None)
    if not name or file is None:
        return ()
    whole = yaml.safe_load(file.read_text("utf-8")) or {}
    found: list[str] = []
    for each in whole.pop("defaults", ()):
        if isinstance(each, str) and each != "_self_":
            found += of_experiment(each, folders)
        elif isinstance(each, Mapping):
            found += [f"{str(group).removeprefix('override').strip(' /')}.name" for group in each]
    for key, value in whole.items():
        found += dotted(str(key), value)
    return tuple(dict.fromkeys(found))
