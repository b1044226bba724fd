"""Launchers of this program among Hydra's plugins, without a package of plugins that Hydra would import at every start.

Hydra instantiates launchers from the package `hydra_plugins` only; 1.4 looks the class up by its full name, and
compares that with the name that the class has itself. So the class goes by a name in a module `hydra_plugins.sigmapca`.
"""

import importlib
import sys
from types import ModuleType

PACKAGE, MODULE = "hydra_plugins", "hydra_plugins.sigmapca"


def target_of(name: str) -> str:
    """Return the full name of a launcher, as a configuration's `_target_` has it."""
    return f"{MODULE}.{name}"


def offer(name: str, launcher: type) -> None:
    """Make a launcher known to Hydra as `target_of(name)`."""
    from hydra.core.plugins import Plugins

    try:
        package = importlib.import_module(PACKAGE)
    except ImportError:  # no plugin is installed
        package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
        package.__path__ = []
    module = sys.modules.setdefault(MODULE, ModuleType(MODULE))
    package.sigmapca = module  # type: ignore[attr-defined]
    setattr(module, name, launcher)
    launcher.__module__, launcher.__qualname__ = MODULE, name
    Plugins.instance().class_name_to_class[target_of(name)] = launcher
