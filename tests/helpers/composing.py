"""Configurations composed as the command line composes them."""

import copy
import functools
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from sigmapca_cli.settings.conf_files import conf_folder, hydra_base
from sigmapca_cli.settings.schema import register


def composed(*overrides: str) -> Any:
    """Return what Hydra makes of these overrides; a copy, since composing takes 60 ms."""
    return copy.deepcopy(_composed(*overrides))


@functools.cache
def _composed(*overrides: str) -> Any:
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folder()), **hydra_base()):
        return compose("config", list(overrides))
