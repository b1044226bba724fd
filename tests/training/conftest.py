"""Configurations composed as the command line would; the fixture `train` stands in tests/conftest.py."""

from hydra import compose, initialize_config_dir

from sigmapca_cli.conf_files import conf_folder, hydra_base
from sigmapca_cli.config import register


def composed(*overrides: str):
    """The configuration that the command line would compose."""
    register()
    with initialize_config_dir(str(conf_folder()), **hydra_base()):
        return compose("config", list(overrides))
