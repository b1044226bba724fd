"""What Hydra and OmegaConf refuse, put into one line by what their errors hold, not by their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from sigmapca_cli.settings.checks import as_text, nearest
from sigmapca_cli.settings.conf_files import LAUNCHERS, SWEEPERS, groups
from sigmapca_cli.settings.keys import no_such_key, type_of
from sigmapca_cli.system.errors import InputError

PLUGINS = {
    **LAUNCHERS,
    **SWEEPERS,
    "slurm": LAUNCHERS["submitit_slurm"],
    "sigmapca_slurm": LAUNCHERS["submitit_slurm"],
    "ax": "hydra_ax_sweeper",
    "nevergrad": "hydra_nevergrad_sweeper",
}
"""Launcher or sweeper: the plugin that brings it, which the package is named for."""

TYPE_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def in_one_line(problem: BaseException) -> InputError | None:
    """Return the error for a user, or None where the exception is not Hydra's, OmegaConf's or YAML's."""
    from hydra.errors import HydraException, MissingConfigException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    causes = list(_chain(problem))
    for cause in causes:
        if isinstance(cause, MissingConfigException):
            return InputError(_missing(str(cause.missing_cfg_file), str(cause)))
    for cause in causes:
        if isinstance(cause, OmegaConfBaseException) and cause.full_key:
            return InputError(_of_key(cause))
    for cause in causes:
        if isinstance(cause, YAMLError):  # whose text names file and line
            return InputError(f"cannot be read as YAML: {cause}")
    if isinstance(problem, HydraException | OmegaConfBaseException):
        return InputError(str(problem).splitlines()[0])
    return None


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what caused it."""
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _missing(file: str, text: str) -> str:
    """Return the line for a choice that no file is: `model=nlpcaa`, or a primary config that does not exist."""
    group, _, option = file.rpartition("/")
    if not group:
        return f"--config-name {option}: no such file in the configuration folder"
    if group in ("hydra/launcher", "hydra/sweeper"):
        package = PLUGINS.get(option, "").replace("_", "-")
        how = f" (pip install {package})" if package else ""
        return f"{group}={option}: no such choice; its plugin is not installed{how}"
    choices = groups().get(group, [])
    listed = f" (choices: {', '.join(choices)})" if 0 < len(choices) <= 12 else ""
    more = "; `sigmapca models` lists them" if group == "model" else ""
    return f"{group}={option}: no such choice{nearest(option, choices)}{listed}{more}"


def _of_key(problem: Any) -> str:
    """Return the line for a key that is in no schema, or that does not take its value: `k=abc`, `lr=null`."""
    from omegaconf.errors import (
        ConfigAttributeError,
        ConfigKeyError,
        InterpolationResolutionError,
        MissingMandatoryValue,
        ValidationError,
    )

    key, value = str(problem.full_key), problem.value
    if isinstance(problem, MissingMandatoryValue):  # `steps=???`
        return f"{key}=???: give a value"
    if isinstance(problem, ConfigKeyError | ConfigAttributeError):
        return no_such_key(key)
    if isinstance(problem, InterpolationResolutionError):
        return f"{key}: {str(problem).splitlines()[0]}; name an existing key in ${{…}}"
    if not isinstance(problem, ValidationError):
        return f"{key}: {str(problem).splitlines()[0]}"
    if value is None:
        return f"{key}: null is not allowed here"
    wanted = type_of(key)
    kind = next((TYPE_WORDS[t] for t in (wanted, *get_args(wanted)) if t in TYPE_WORDS), None)
    return f"{key}={as_text(value)}: {f'must be {kind}' if kind else 'this key does not take such a value'}"
