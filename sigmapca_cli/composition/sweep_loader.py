"""The configurations of the jobs of a sweep: what they share is composed once, and each job's own values are set in it.

Hydra composes each job from all files anew, and once more before the first to see that it can: .2 s a job, or two
minutes before the first of 500.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


class SweepLoader:
    """Stand in for Hydra's loader of configurations: the same configurations, from the same functions of Hydra.

    loader: Hydra's own, which does all but the jobs of a sweep.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.groups = set(loader.list_groups(""))
        self.shared: dict[tuple[str, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Return what Hydra's loader has under this name."""
        return getattr(self.loader, name)

    def load_sweep_config(self, master_config: Any, sweep_overrides: Sequence[str]) -> Any:
        """Return the configuration of one job. Raise what Hydra raises for one that it cannot compose."""
        from hydra._internal.config_loader_impl import get_overrides_dirname
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from omegaconf import OmegaConf

        parsed = OverridesParser.create().parse_overrides(overrides=list(sweep_overrides))
        values = [override for override in parsed if self.is_value(override)]
        rest = tuple(str(override.input_line) for override in parsed if not self.is_value(override))
        if rest not in self.shared:
            self.shared[rest] = self.loader.load_sweep_config(master_config, list(rest))
        config = copy.deepcopy(self.shared[rest])
        self.loader._apply_overrides_to_config(values, config)
        own = [override for override in parsed if not override.is_hydra_override()]
        config.hydra.overrides.task = [override.input_line for override in own]
        how = config.hydra.job.config.override_dirname
        config.hydra.job.override_dirname = get_overrides_dirname(
            own, kv_sep=how.kv_sep, item_sep=how.item_sep, exclude_keys=how.exclude_keys
        )
        OmegaConf.copy_cache(from_config=master_config, to_config=config)
        return config

    def is_value(self, override: Any) -> bool:
        """Whether an override sets one value and chooses no file."""
        key = override.key_or_group
        plain = not (override.is_delete() or override.is_add() or override.is_force_add() or override.package)
        return plain and not override.is_hydra_override() and "/" not in key and key not in self.groups
