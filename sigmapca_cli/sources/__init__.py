"""Where x comes from: a registry of builders, one a kind of data; each is imported only when it is used."""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig

if TYPE_CHECKING:
    from sigmapca_cli.sources.base import Source

BUILDERS = {
    "natural": "sigmapca_cli.sources.natural:build",
    "planted": "sigmapca_cli.sources.planted:build",
    "cifar10": "sigmapca_cli.sources.cifar:build",
    "cifar100": "sigmapca_cli.sources.cifar:build",
    "mnist": "sigmapca_cli.sources.mnist:build",
    "images": "sigmapca_cli.sources.folder:build",
    "signals": "sigmapca_cli.sources.signals:build",
    "points": "sigmapca_cli.sources.points:build",
    "array": "sigmapca_cli.sources.arrays:build",
    "prepared": "sigmapca_cli.sources.prepared:build",
}

WITHOUT_FILES = ("natural", "planted", "points")


def build(data_cfg: DataConfig) -> "Source":
    """The source that a `data` group describes (see `config.DataConfig`); InputError when unknown."""
    name = data_cfg.name
    if name not in BUILDERS:
        near = get_close_matches(str(name), BUILDERS, n=1)
        hint = f"did you mean data={near[0]}?" if near else f"choose one of {', '.join(BUILDERS)}"
        raise InputError(f"data={name} is unknown: {hint}")
    if name in WITHOUT_FILES and getattr(data_cfg, "path", None) is not None:
        raise InputError(f"data={name} reads no file: for data.path= use data=array, images or cifar10")
    module, function = BUILDERS[name].split(":")
    builder = getattr(import_module(module), function)
    if name not in ("cifar10", "cifar100", "mnist") or data_cfg.path is not None:
        return builder(data_cfg)
    from sigmapca_cli.sources.prepared import load
    from sigmapca_cli.sources.reuse import reusable, with_near_misses

    if (made := reusable(data_cfg)) is not None:
        return load(made, data_cfg)
    try:
        return builder(data_cfg)
    except InputError as problem:
        raise with_near_misses(data_cfg, problem) from None
