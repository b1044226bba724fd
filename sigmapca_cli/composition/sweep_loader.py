"""The configurations of the jobs of a sweep: what they share is composed once, and each job's own values are set in it.

Hydra composes each job from all files anew, and once more before the first to see that it can: .2 s a job, or two
minutes before the first of 500.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.composition.kept import set_in, sets_one_value, split
from sigmapca_cli.composition.overrides import read
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


class SweepLoader:
    """Stand in for Hydra's loader of configurations: the same configurations, from the same functions of Hydra.

    loader: Hydra's own, which does all but the jobs of a sweep.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.groups = set(loader.list_groups(""))
        self.shared: dict[tuple[bool, tuple[str, ...]], Any] = {}
        self.last: tuple[Any, Any] = (None, None)  # what is set in the last job's configuration, and that
        self.legal: set[tuple[Any, ...]] = set()

    def __getattr__(self, name: str) -> Any:
        """Return what Hydra's loader has under this name."""
        return getattr(self.loader, name)

    def load_sweep_config(self, master_config: Any, sweep_overrides: Sequence[str]) -> None:
        """Raise what Hydra raises for a job that it cannot compose: sweepers ask for each before the first begins.

        Where one number can be set, another of its type can.
        """
        kind = tuple(
            (type(one.value()), one.key_or_group) if self.is_number(one) else str(one.input_line)
            for one in map(read, sweep_overrides)
        )
        if kind not in self.legal:
            self.composed(master_config, sweep_overrides)
            self.legal.add(kind)

    def is_number(self, override: Override) -> bool:
        """Return whether an override sets a number."""
        return sets_one_value(override, self.groups) and type(override.value()) in (int, float)

    def composed(self, master_config: Any, sweep_overrides: Sequence[str]) -> Any:
        """Return the configuration of one job, until the next is asked for: it is the same object with other values.

        Raise what Hydra raises for one that it cannot compose.
        """
        from omegaconf import OmegaConf

        parsed = [read(word) for word in sweep_overrides]
        parts = split(parsed, self.groups)
        if parts is None:
            return self.loader.load_sweep_config(master_config, list(sweep_overrides))
        values, others = parts
        rest = tuple(str(override.input_line) for override in others)
        config = self.with_set(rest, [override.key_or_group for override in values], master_config)
        set_in(config, values, parsed)
        OmegaConf.copy_cache(from_config=master_config, to_config=config)
        return config

    def job(self, master_config: Any, sweep_overrides: Sequence[str], number: int) -> Any:
        """Return the configuration of the job of this number, which knows its number and its folder: as above."""
        from omegaconf import open_dict

        config = self.composed(master_config, sweep_overrides)
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = str(number), number
            config.hydra.runtime.output_dir = str(folder_of(config).absolute())
        return config

    def with_set(self, rest: tuple[str, ...], keys: Collection[str], master_config: Any) -> Any:
        """Return a configuration of these choices in which no values but those of `keys` have been set."""
        if self.last[0] != (rest, set(keys)):
            of_sweep = self.are_of_the_sweep(rest, keys, master_config)
            if (of_sweep, rest) not in self.shared:
                self.shared[of_sweep, rest] = (
                    master_config if of_sweep else self.loader.load_sweep_config(master_config, list(rest))
                )
            self.last = ((rest, set(keys)), copy.deepcopy(self.shared[of_sweep, rest]))
        return self.last[1]

    def are_of_the_sweep(self, rest: tuple[str, ...], keys: Collection[str], master_config: Any) -> bool:
        """Return whether the sweep's own configuration has these choices, and no values but those of `keys`."""
        given = [read(str(word)) for word in master_config.hydra.overrides.task]
        swept = [override for override in given if override.is_sweep_override()]
        if any("/" in o.key_or_group or o.key_or_group in self.groups for o in swept):
            return False
        parts = split([override for override in given if override not in swept], self.groups)
        if parts is None:
            return False
        values, others = parts
        fixed = {override.key_or_group for override in values}
        return fixed <= set(keys) and rest == tuple(str(override.input_line) for override in others)


def folder_of(config: Any) -> Path:
    """Return the folder of a job within its sweep; `config` is the job's composed configuration with Hydra's part.

    Raise InputError for one that is elsewhere, or deeper: there the sweep would not find it.
    """
    name = str(config.hydra.sweep.subdir)
    if "/" in name or name.startswith("."):
        raise InputError(
            f"hydra.sweep.subdir={name}: has to name a folder in that of the sweep, without / or a dot before"
        )
    return Path(str(config.hydra.sweep.dir)) / name
