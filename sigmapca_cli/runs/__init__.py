"""The run directory: written aside and replaced, read lazily, found by name, owned by one process.

In Python the room itself can be called: `sp.runs("outputs")` is `api.listing.runs("outputs")`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """This module, which can be called: a package and a function of one name share one place in `sigmapca_cli`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return import_module("sigmapca_cli.api.listing").runs(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
