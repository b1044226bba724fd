"""Overrides as Hydra's own grammar reads them, each checked by itself before anything is composed or made.

And which keys they set, or the file of an experiment.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.settings.checks import nearest
from sigmapca_cli.settings.conf_files import groups
from sigmapca_cli.settings.keys import known_keys, no_such_key
from sigmapca_cli.settings.schema import GROUPS
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import is_finite

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


OPEN = ("regularisers",)  # groups of keys that a user makes
# Of Hydra's own: settings of plugins, of logging and of the environment are not listed in its schema.
OPEN_HYDRA = (
    "launcher", "sweeper", "callbacks", "job_logging", "hydra_logging", "env", "defaults", "help",
    "hydra_help",
)  # fmt: skip
TEXTS = {
    "note": "a text with commas needs quotes within quotes: \"note='first, second'\"",
    "tags": "several tags are a list: 'tags=[pilot,v2]'",
    "tracker": "several trackers are a list: 'tracker=[tensorboard,mlflow]'",
    "objective": "several objectives are a list: 'objective=[stability,loss]'",
}
"""Key: what to do if its value holds a comma, where nobody means a sweep."""


def parsed(
    words: Sequence[str], more_groups: Collection[str] = (), *, sweep: bool = False, hydra: bool = False
) -> list[Override]:
    """Return overrides as Hydra's parser reads them.

    Raise InputError for a word that is none, for a removal, for a key in no schema (Hydra lets `+typo=1` pass), for
    a number that no float can hold, unless `sweep` for several values, and unless `sweep` or `hydra` for Hydra's own
    settings.
    """
    own = groups()
    names = [*own, "experiment", *more_groups]
    found = [_parse(word) for word in words]
    for override in found:
        _refuse_unknown(override, names)
        _refuse_value(override, own)
        if not sweep:
            _refuse_sweep(override)
        if not (sweep or hydra):
            _refuse_hydra(override)
    return found


@functools.lru_cache(10_000)
def read(word: str) -> Override:
    """Return an override as Hydra's parser reads it; jobs share most of theirs. Raise what Hydra raises."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_override(word)


def values(words: Sequence[str]) -> dict[str, Any]:
    """Return KEY: VALUE of overrides that name single values. Raise InputError for several values and removals."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    found: dict[str, Any] = {}
    for word in words:
        override = _parse(word)
        if override.is_sweep_override():
            raise InputError(f"{word}: a list stands in brackets, as in data.drop=[a,b]")
        try:
            whole: Any = OmegaConf.to_container(OmegaConf.create({"value": override.value()}), resolve=True)
        except OmegaConfBaseException as problem:
            raise InputError(f"{word}: cannot be read ({str(problem).splitlines()[0]})") from None
        found[override.key_or_group] = whole["value"]
    return found


def texts(overrides: Iterable[Override]) -> list[str]:
    """Return overrides as they were given."""
    return [str(override.input_line) for override in overrides]


def is_given(overrides: Sequence[Override], key: str) -> bool:
    """Return whether one of the overrides sets this key or group."""
    return any(override.key_or_group == key for override in overrides)


def _parse(word: str) -> Override:
    from hydra.errors import HydraException

    if not word.strip() or word.lstrip("+~")[:1] == "=":
        raise InputError(f"{word!r}: an override is key=value")
    try:
        override = read(word)
    except HydraException:
        if "=" not in word and not word.startswith("~"):
            hint = nearest(word, groups())
            raise InputError(f"{word}: an override is key=value{hint}") from None
        quotes = "put values with special characters in quotes: \"key='value'\""
        raise InputError(f"{word}: cannot be read; {quotes}") from None
    if override.is_delete():
        # The schema's default would take its place, and other data than the user thinks be trained on.
        raise InputError(f"{word}: nothing can be removed; give {override.key_or_group}=VALUE")
    return override


def _refuse_unknown(override: Override, names: Sequence[str]) -> None:
    key = override.key_or_group
    if key.startswith("hydra."):
        if not _in_hydra(key.split(".")[1:]):
            raise InputError(f"{key}: no such key of Hydra's; `sigmapca train --info config` lists them")
    elif "/" not in key and key.split(".")[0] not in OPEN and key not in (*known_keys(), *names):
        raise InputError(no_such_key(key, names))


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


def _refuse_value(override: Override, own: Collection[str]) -> None:
    """Raise InputError for a number that no float can hold, and for a group that is not chosen by a name."""
    key = override.key_or_group
    each = list(_plain(override))
    if any(isinstance(value, int) and not is_finite(value) for value in each):
        raise InputError(f"{key}: the number is too large")
    if key in own and any(not isinstance(value, str | dict) for value in each):
        raise InputError(
            f"{override.input_line}: no such choice; `sigmapca train --help` lists those of {key}"
        )


def _plain(override: Override) -> Iterator[Any]:
    """Yield the values of an override, the elements of lists among them, and of the choices of a sweep."""
    value: Any = override.value()
    waiting = list(getattr(value, "list", ())) if override.is_sweep_override() else [value]
    while waiting:
        value = waiting.pop()
        value = getattr(value, "text", value)  # of a quoted word
        if isinstance(value, list):
            waiting += value
        else:
            yield value


def _refuse_sweep(override: Override) -> None:
    key, word = override.key_or_group, override.input_line
    if override.is_sweep_override():
        if key in TEXTS:
            raise InputError(f"{key}: {TEXTS[key]}")
        raise InputError(f"{word}: several values make a sweep, which needs -m: sigmapca train -m {word}")


def _refuse_hydra(override: Override) -> None:
    """Raise InputError for a setting of Hydra's own, which one run would not read; where it looks for files it does."""
    if override.is_hydra_override() and override.key_or_group != "hydra.searchpath":
        raise InputError(
            f"{override.input_line}: Hydra's own settings are for sweeps (-m); one run's folder is --run-dir FOLDER"
        )


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
