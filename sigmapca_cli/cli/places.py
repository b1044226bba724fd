"""Where `conf/` is, and what it holds, without importing Hydra."""

from functools import cache
from pathlib import Path


@cache
def conf_folder() -> Path:
    """The configuration folder: inside an installed wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def groups() -> dict[str, list[str]]:
    """Each config group with its choices, as the files of `conf/` give them."""
    found = {}
    for folder in sorted(conf_folder().iterdir()):
        if folder.is_dir() and folder.name != "hydra":
            choices = sorted(file.stem for file in folder.glob("*.yaml"))
            if choices:
                found[folder.name] = choices
    return found
