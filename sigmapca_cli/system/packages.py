"""Packages that only some commands need."""

from importlib import import_module
from typing import Any

from sigmapca_cli.system.errors import InputError


def required(what: str, *names: str, package: str = "") -> Any:
    """Return the module of the first name, once all can be imported; `package`: what pip calls it, if not so.

    Raise InputError that `what` needs them, and how they are installed, where one of them cannot.
    """
    try:
        first, *_ = map(import_module, names)
        return first
    except ImportError:
        needs = "needs packages" if len(names) > 1 else "needs a package"
        raise InputError(f"{what} {needs}: pip install {package or ' '.join(names)}") from None
