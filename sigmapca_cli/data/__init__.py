"""The data x: one module per kind of data (`config.KINDS`); each is imported only when it is used."""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from sigmapca_cli.data.config import KINDS, DataConfig, Forecast
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from sigmapca_cli.data.source import Source


def build(data_cfg: DataConfig, forecast: Forecast | None = None) -> "Source":
    """Return the source that a `data` group describes (see `config.DataConfig`); raise InputError if it is unknown.

    forecast: asked before the first pass over the rows of a large file; see `config.Forecast`.
    """
    source = _built(data_cfg, forecast)
    source.ordered = asked_order(data_cfg)
    return source


def asked_order(data_cfg: DataConfig) -> bool | None:
    """Return data.ordered as a source has it: None where it is to be found."""
    return None if data_cfg.ordered == "auto" else bool(data_cfg.ordered)


def _built(data_cfg: DataConfig, forecast: Forecast | None) -> "Source":
    name = data_cfg.name
    if name not in KINDS:
        near = get_close_matches(str(name), KINDS, n=1)
        hint = f"did you mean data={near[0]}?" if near else f"choose one of {', '.join(KINDS)}"
        raise InputError(f"data={name} is unknown: {hint}")
    if not KINDS[name].reads_files and data_cfg.path is not None:
        raise InputError(f"data={name} reads no file: for data.path= use data=array, images or cifar10")
    builder = import_module(f"sigmapca_cli.data.{KINDS[name].module}").build
    if KINDS[name].forecasts:
        return builder(data_cfg, forecast)
    if name not in ("cifar10", "cifar100", "mnist") or data_cfg.path is not None:
        return builder(data_cfg)
    from sigmapca_cli.data.cache.prepared import load, reusable, with_near_misses

    if (made := reusable(data_cfg)) is not None:
        return load(made, data_cfg)
    try:
        return builder(data_cfg)
    except InputError as problem:
        raise with_near_misses(data_cfg, problem) from None
