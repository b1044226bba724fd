"""Configurations composed as the command line composes them."""

from typing import Any

from omegaconf import open_dict

from sigmapca_cli.composition.compose import load


def composed(*overrides: str) -> Any:
    """Return what Hydra makes of these overrides, without Hydra's own part."""
    config = load(overrides)
    with open_dict(config):
        del config["hydra"]
    return config
