"""Settings that nothing changes once a job is made of them.

Frozen dataclasses would say the same, but OmegaConf then makes the schema read-only before it is filled.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

Settings = TypeVar("Settings")


class Sealable:
    """The base of the dataclasses of settings: after `seal` no field can be set, and `replace` makes another."""

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_sealed"):
            raise AttributeError(
                f"{name}: the settings of a job do not change; dataclasses.replace makes others"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields: a copy is another one, which may change."""
        return {name: value for name, value in self.__dict__.items() if name != "_sealed"}


def seal(settings: Settings) -> Settings:
    """Return the settings, which do not change any more, those of their groups included."""
    for each in fields(settings) if is_dataclass(settings) else ():
        seal(getattr(settings, each.name))
    if isinstance(settings, Sealable):
        settings.__dict__["_sealed"] = True
    return settings
