"""Which code a folder of configurations may name: Hydra builds launchers, sweepers, callbacks and log handlers by name.

A folder given with --config-dir or --config-path may be a colleague's. Its files choose settings; code outside of
Hydra's own plugins is refused unless the user allows it by name in SIGMAPCA_ALLOW_TARGETS.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError

ALLOWED = "SIGMAPCA_ALLOW_TARGETS"
CALLBACKS = (
    "hydra.experimental.callbacks.LogJobReturnCallback",
    "hydra.experimental.callbacks.PickleJobInfoCallback",
)
HANDLERS = ("logging.StreamHandler", "logging.FileHandler", "logging.NullHandler", "rich.logging.RichHandler")


def refuse_code(folder: Path) -> None:
    """Raise InputError where a YAML file below `folder` names code to run that is not allowed.

    That is a `_target_` other than a launcher, sweeper or callback that Hydra and its plugins offer, a log handler
    other than those of `HANDLERS`, and a factory `()`. Folders that a file adds by `searchpath` are looked through too.
    """
    import yaml

    for path in sorted(folder.rglob("*.yaml")):
        try:
            loaded = yaml.safe_load(path.read_bytes())
        except (yaml.YAMLError, ValueError, RecursionError):
            continue  # Hydra says what is wrong with it when it is used
        except OSError as problem:
            raise InputError(f"{path}: cannot be read ({problem.strerror})") from None
        for key, value in _entries(loaded):
            if key == "searchpath":
                for place in value if isinstance(value, list) else []:
                    if (found := Path(str(place).removeprefix("file://"))).is_dir():
                        refuse_code(found)
            elif (found_code := _code(key, value)) and found_code not in _allowed():
                code = found_code[:80]
                raise InputError(
                    f"{path}: names code to run ({key}: {code}); if you trust it, set {ALLOWED}={code}"
                )


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key and value at any depth; aliases that lead back are not followed again."""
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if not isinstance(item, dict | list) or id(item) in seen:
            continue
        seen.add(id(item))
        for key, inner in item.items() if isinstance(item, dict) else ((None, inner) for inner in item):
            waiting.append(inner)
            if key is not None:
                yield str(key).rpartition(".")[2], inner


def _code(key: str, value: Any) -> str:
    """Return the name of the code that a key and its value make Hydra or `logging` run; "" for any other key."""
    if key in ("_target_", "()"):
        return str(value)
    if key == "class" and str(value) not in HANDLERS:
        return str(value)
    return ""


def _allowed() -> set[str]:
    """Return the full names of what may be a `_target_`."""
    from hydra.core.plugins import Plugins
    from hydra.plugins.launcher import Launcher
    from hydra.plugins.sweeper import Sweeper

    plugins = Plugins.instance()
    found = [*plugins.discover(Launcher), *plugins.discover(Sweeper)]
    own = [name.strip() for name in os.environ.get(ALLOWED, "").split(",")]
    return {f"{plugin.__module__}.{plugin.__name__}" for plugin in found} | {*CALLBACKS, *own}
