"""Where `conf/` is, and what it holds, without importing Hydra."""

import sys
from functools import cache
from pathlib import Path

LAUNCHERS = {
    "joblib": "hydra_joblib_launcher",
    "submitit_local": "hydra_submitit_launcher",
    "submitit_slurm": "hydra_submitit_launcher",
    "ray": "hydra_ray_launcher",
}
SWEEPERS = {"optuna": "hydra_optuna_sweeper"}
"""Choice: the plugin that brings it, a folder of `hydra_plugins`."""


@cache
def conf_folder() -> Path:
    """The configuration folder: inside an installed wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def groups() -> dict[str, list[str]]:
    """Each config group with its choices, as the files of `conf/` give them."""
    found = {}
    for folder in sorted(conf_folder().iterdir()):
        if folder.is_dir() and folder.name != "hydra":
            choices = choices_of(folder.name)
            if choices:
                found[folder.name] = list(choices)
    return found


def choices_of(group: str) -> tuple[str, ...]:
    """Return the choices of one config group: the names of its files."""
    return tuple(sorted(file.stem for file in (conf_folder() / group).glob("*.yaml")))


@cache
def keys_of_choices(group: str) -> dict[str, frozenset[str]]:
    """Return, for each choice of a config group, the keys of the group that its file names."""
    import yaml

    found = {}
    for name in choices_of(group):
        whole = yaml.safe_load((conf_folder() / group / f"{name}.yaml").read_text("utf-8"))
        found[name] = frozenset(whole.get(group, whole))  # a file may set keys of other groups besides
    return found


def all_groups() -> dict[str, list[str]]:
    """The groups, and launchers and sweepers: ours, Hydra's own, and those of the installed plugins."""
    own = {f.stem for f in (conf_folder() / "hydra" / "launcher").glob("*.yaml")}
    launchers = {"basic", "vectorized", *own, *installed(LAUNCHERS)}
    sweepers = {"basic", *installed(SWEEPERS)}
    return {**groups(), "hydra/launcher": sorted(launchers), "hydra/sweeper": sorted(sweepers)}


def installed(plugins: dict[str, str]) -> list[str]:
    """Return the choices whose plugin is installed."""
    places = [Path(folder) / "hydra_plugins" for folder in sys.path]
    return [name for name, plugin in plugins.items() if any((place / plugin).is_dir() for place in places)]


@cache
def hydra_base() -> dict[str, str]:
    """Return `version_base` for Hydra's functions: the behaviour of 1.3, which later versions have by default."""
    from importlib.metadata import version

    return {"version_base": "1.3"} if version("hydra-core").startswith("1.3.") else {}
