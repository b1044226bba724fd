"""Configurations of the same choices of files, and the files themselves, kept for as long as none of them changes.
Hydra reads and merges about 60 files for each configuration, .2 s. Most that one process composes differ in values
alone: another one is a copy in which values are set, and takes .01 s.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.config_source import ConfigResult

from sigmapca_cli.composition.overrides import read

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


Load = Callable[[list[str]], tuple[Any, bool]]
"""Words: (the configuration, whether the same words and files would make it again)."""
MOST_KEPT = 32
"""Configurations that are kept."""
_KEPT: OrderedDict[tuple[Any, ...], tuple[tuple[Any, ...], bytes]] = OrderedDict()
"""What they depend on: (the state of the files, the configuration); pickled, which is six times as fast as copying."""


def split(
    overrides: Sequence[Override], groups: Collection[str]
) -> tuple[list[Override], list[Override]] | None:
    """Return the overrides that set one value each, and the others, which choose files or change what keys there are.

    Return None where one of the others touches the key of a value: which of them comes last counts there.
    """
    ones = [override for override in overrides if sets_one_value(override, groups)]
    others = [override for override in overrides if not sets_one_value(override, groups)]
    touched = [
        other.key_or_group
        for other in others
        if other.key_or_group not in groups or isinstance(other.value(), dict)  # those that choose no file
    ]
    if any(
        _within(one.key_or_group, key) or _within(key, one.key_or_group) for one in ones for key in touched
    ):
        return None
    return ones, others


def sets_one_value(override: Override, groups: Collection[str]) -> bool:
    """Return whether an override sets one value, and neither chooses a file nor changes what keys there are."""
    key = override.key_or_group
    changes_keys = override.is_delete() or override.is_add() or override.is_force_add() or override.package
    several = override.is_sweep_override() or isinstance(override.value(), dict)  # which would be merged
    return not (changes_keys or several or override.is_hydra_override() or "/" in key or key in groups)


def _within(key: str, other: str) -> bool:
    return key == other or key.startswith(f"{other}.")


def set_in(config: Any, values: Sequence[Override], given: Sequence[Override]) -> None:
    """Set values in a configuration of the same choices, which then says that it has been `given` these overrides."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname

    ConfigLoaderImpl._apply_overrides_to_config(list(values), config)
    own = [override for override in given if not override.is_hydra_override()]
    config.hydra.overrides.task = [override.input_line for override in own]
    how = config.hydra.job.config.override_dirname
    config.hydra.job.override_dirname = get_overrides_dirname(
        own, kv_sep=how.kv_sep, item_sep=how.item_sep, exclude_keys=how.exclude_keys
    )


def composed(folder: Path, words: Sequence[str], surroundings: tuple[Any, ...], load: Load) -> Any:
    """Return what `load` makes of these words; it is asked for their choices where these are not kept.

    folder: where all files are. surroundings: all else that a configuration depends on. What Hydra refuses, and what
    depends on more than that, `load` makes as a whole.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        overrides = [read(word) for word in words]
        groups = {path.name for path in folder.iterdir() if path.is_dir()}
        parts = split(overrides, groups)
        own = (o.is_hydra_override() and "/" not in o.key_or_group for o in overrides)
        if parts is None or any(own):
            return load(list(words))[0]
        values, others = parts
        config = _of_choices(folder, [str(override.input_line) for override in others], surroundings, load)
        set_in(config, values, overrides)
    except (HydraException, OmegaConfBaseException):
        return load(list(words))[0]
    config.hydra.runtime.cwd = os.getcwd()
    return config


def _of_choices(folder: Path, words: list[str], surroundings: tuple[Any, ...], load: Load) -> Any:
    """Return a copy of the configuration of these choices that its caller may change."""
    from omegaconf import OmegaConf

    key, state = (folder, *words, *surroundings), state_of(folder)
    if key in _KEPT and _KEPT[key][0] == state:
        _KEPT.move_to_end(key)
        found = pickle.loads(_KEPT[key][1])
        OmegaConf.clear_cache(found)  # ${now:} of then
        return found
    made, by_files = load(words)
    places = {source.path for source in made.hydra.runtime.config_sources if source.schema == "file"}
    if by_files and places == {str(folder)} and not made.hydra.job.env_copy:
        _KEPT[key] = state, pickle.dumps(made)
        while len(_KEPT) > MOST_KEPT:
            _KEPT.popitem(last=False)
    return made


def state_of(folder: Path) -> tuple[Any, ...]:
    """Return what differs once a file of configurations in a folder has been changed, added or removed.

    A link that leads nowhere, as an editor leaves beside a file that is open, counts as it is.
    """
    found: list[tuple[Any, ...]] = []
    waiting, seen = [str(folder)], set()
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):  # what cannot be looked into holds nothing that Hydra could read
            facts = os.stat(place)
            if (facts.st_dev, facts.st_ino) in seen:
                continue  # a link to a folder above
            seen.add((facts.st_dev, facts.st_ino))
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.endswith(".yaml"):
                        found.append(_state_of_file(entry))
                    elif entry.is_dir():
                        waiting.append(entry.path)
    return tuple(sorted(found))


def _state_of_file(entry: os.DirEntry[str]) -> tuple[Any, ...]:
    try:
        facts = entry.stat()
    except OSError:
        facts = entry.stat(follow_symlinks=False)
    return entry.path, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


_READ: dict[str, tuple[Any, bytes]] = {}
"""Folder and file: (the state of the folder, what was read)."""
_RESOLVER = re.compile(r"\$\{[^}]*:")


class Repository(ConfigRepository):
    """Hydra's own; `folder` is where all files are that are not Hydra's.

    asking: the files whose list of defaults asks a resolver, as of a variable of the environment, which files to read.
    """

    def __init__(self, path: ConfigSearchPath, folder: Path) -> None:
        super().__init__(path)
        self.folder, self.state = folder, state_of(folder)
        self.asking: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Repository:
        """Return one whose sources may be replaced by others: Hydra asks for it at each composition.

        What is found to be `asking` is known to both.
        """
        return copy.copy(self)

    def initialize_sources(self, config_search_path: ConfigSearchPath) -> None:
        """Look in other places, whose files are read each time."""
        super().initialize_sources(config_search_path)
        self.state = ()

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return what a file, or the schema, says; None if there is none."""
        found = self._read(config_path)
        if found is not None and _RESOLVER.search(repr(found.defaults_list)):
            self.asking.add(config_path)
        return found

    def _read(self, config_path: str) -> ConfigResult | None:
        if not self.state:
            return super().load_config(config_path)
        key = f"{self.folder}:{config_path}"
        if key in _READ and _READ[key][0] == self.state:
            return pickle.loads(_READ[key][1])
        found = super().load_config(config_path)
        if found is not None and (not found.is_schema_source or config_path.startswith("schema/")):
            _READ[key] = self.state, pickle.dumps(found)
        return found
