"""Files of configurations as Hydra reads them, each once in a process for as long as none changes."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.config_source import ConfigResult

from sigmapca_cli.composition.kept import state_of

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
