"""What stands between a command and Hydra: where configurations come from, what is printed of them, and a multirun."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.settings.checks import choice, nearest
from sigmapca_cli.system.errors import InputError, SigmapcaError

if TYPE_CHECKING:
    from sigmapca_cli.composition.compose import Folders

SHOWN = ("job", "hydra", "all")
INFORMATION = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def folders_of(
    config_name: str | None = None, config_dir: str | None = None, config_path: str | None = None
) -> Folders:
    """Return where configurations come from. Raise InputError for a folder that is not there."""
    from sigmapca_cli.composition.compose import Folders

    for flag, given in (("--config-dir", config_dir), ("--config-path", config_path)):
        if given is not None and not Path(given).is_dir():
            raise InputError(f"{flag} {given}: no such folder")
    own = Folders()
    return Folders(
        Path(config_path).absolute() if config_path else own.main,
        config_name or own.name,
        Path(config_dir) if config_dir else None,
    )


def show_configuration(
    overrides: Sequence[str],
    folders: Folders,
    what: str,
    *,
    resolve: bool = False,
    package: str | None = None,
) -> None:
    """Print the job's configuration, Hydra's part, or all; or one package of it."""
    from omegaconf import OmegaConf, open_dict

    from sigmapca_cli.composition.compose import load
    from sigmapca_cli.composition.hydra_errors import in_one_line
    from sigmapca_cli.composition.overrides import is_given, parsed
    from sigmapca_cli.settings.schema import GROUPS

    choice("--cfg", what, SHOWN)
    given = parsed(overrides, folders.groups(), hydra=True)
    if is_given(given, "hydra/launcher") or folders.flags():  # importing the launchers takes .2 s
        register_launchers()
    config = load(overrides, folders)
    with open_dict(config):
        for key in list(config):
            if what != "all" and (key == "hydra") != (what == "hydra"):
                del config[key]
    chosen = config if package in (None, "_global_") else OmegaConf.select(config, package)
    if chosen is None:
        raise InputError(
            f"--package {package}: no such part of the configuration{nearest(str(package), GROUPS)}"
        )
    if not OmegaConf.is_config(chosen):
        print(chosen)
        return
    try:
        text = OmegaConf.to_yaml(chosen, resolve=resolve)
    except Exception as problem:
        raise in_one_line(problem) or problem from None
    print(f"# @package {package}\n{text}" if chosen is not config else text, end="")


def show_information(overrides: Sequence[str], folders: Folders, what: str) -> None:
    """Let Hydra print what it knows of its plugins, its search path or the list of defaults."""
    choice("--info", what, INFORMATION)
    run_hydra(overrides, ["--info", what], folders)


def register_launchers() -> None:
    """Make the launchers and the resolver of this program known to Hydra; slurm's needs submitit, which is an extra."""
    from sigmapca_cli.launchers import adaptive

    adaptive.register()
    for name in ("vectorized", "slurm"):
        try:
            importlib.import_module(f"sigmapca_cli.launchers.{name}").register()
        except InputError:  # said where it is asked for
            continue


def run_multirun(task: Callable[..., Any], overrides: Sequence[str], folders: Folders) -> None:
    """Let Hydra run the jobs of a sweep, `task`, a module-level function, of each composed configuration."""
    from sigmapca_cli.composition.compose import multirun

    with hydras():
        multirun(task, overrides, folders)


def run_hydra(overrides: Sequence[str], flags: Sequence[str], folders: Folders) -> None:
    """Hand overrides and flags to `hydra.main`.

    The overrides stand first: behind a flag Hydra does not take `hydra/launcher=joblib`.
    """
    import hydra

    from sigmapca_cli.settings.conf_files import hydra_base

    if folders.further:
        flags = [*flags, "--config-dir", str(folders.further)]
    # Hydra would print its own many-line explanation and exit 1; raised, it can be put into one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    before = sys.argv
    sys.argv = ["sigmapca", *overrides, *flags]
    try:
        with hydras():
            hydra.main(**hydra_base(), config_path=str(folders.main), config_name=folders.name)(print)()
    finally:
        sys.argv = before


@contextlib.contextmanager
def hydras() -> Iterator[None]:
    """Let Hydra know the schema and the launchers; what it refuses inside the block becomes one line."""
    from sigmapca_cli.composition.hydra_errors import in_one_line
    from sigmapca_cli.settings.schema import register

    register()
    register_launchers()
    try:
        yield
    except (SigmapcaError, KeyboardInterrupt):
        raise
    except Exception as problem:
        if os.environ.get("SIGMAPCA_DEBUG"):
            raise
        raise in_one_line(problem) or problem from None
