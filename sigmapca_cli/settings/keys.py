"""The keys of the schema by their dotted names: which there are, of which type, and what is said of any other."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.system.errors import InputError


def known_keys() -> list[str]:
    """Every key of the schema, dotted."""
    keys = []
    for field_ in fields(Config):
        keys.append(field_.name)
        if isinstance(field_.type, type) and is_dataclass(field_.type):
            keys += [f"{field_.name}.{inner.name}" for inner in fields(field_.type)]
    return keys


def type_of(key: str) -> Any:
    """Return the annotation of a dotted key; None for one that is in no schema."""
    node: Any = Config
    for name in key.split("."):
        found = {field_.name: field_.type for field_ in fields(node)} if is_dataclass(node) else {}
        node = found.get(name)
    return node


def no_such_key(key: str, more: Iterable[str] = ()) -> str:
    """Return the line for a key that is in no schema; `more`: further names that are known."""
    return f"{key}: no such key{nearest(key, [*known_keys(), *more])}; `sigmapca train --help` lists them"


def refuse_unknown(plain: Mapping[str, Any]) -> None:
    """Refuse keys that are in no schema: Hydra lets `+typo=3` pass."""
    known = set(known_keys())
    for key, value in plain.items():
        inner = value if isinstance(value, Mapping) and key != "regularisers" else {}
        for name in (key, *(f"{key}.{k}" for k in inner)):
            if name not in known:
                raise InputError(no_such_key(name))
