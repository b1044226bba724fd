"""`data=cifar10` without a path uses what `extract-patches` made with the same options."""

import json
from pathlib import Path
from typing import Any

from sigmapca_cli.errors import InputError
from sigmapca_cli.sources.config import DataConfig
from sigmapca_cli.sources.locate import data_roots
from sigmapca_cli.untrusted_files import as_text

PREPARABLE = ("cifar10", "cifar100", "mnist")
# Where the files were, and what is applied when a prepared file is opened: not part of what was prepared.
LATER = ("path", "offline", "half", "whiten", "scale_input")


def differences(made: dict[str, Any], cfg: DataConfig) -> list[str]:
    """The options in which a prepared file differs from what is asked, as `data.key=value` of the file."""
    return [
        f"data.{key}={'null' if value is None else value}"
        for key, value in made.items()
        if key not in LATER and getattr(cfg, key, value) != value
    ]


def prepared_files(name: str) -> list[tuple[Path, dict[str, Any]]]:
    """Prepared files of a data set in the data folders, with the options they were made with."""
    from sigmapca_cli.sources.prepared import is_prepared, open_prepared

    found = []
    for root in data_roots():
        for path in sorted(root.glob(f"{name}-*.h5")):
            if is_prepared(path):
                with open_prepared(path) as file:
                    found.append((path, json.loads(as_text(file.attrs["options"]))))
    return found


def reusable(cfg: DataConfig) -> Path | None:
    """The prepared file to use for this data group, or None."""
    if cfg.name not in PREPARABLE or cfg.path is not None:
        return None
    for path, made in prepared_files(cfg.name):
        if made.get("half", "all") == "all" and not differences(made, cfg):
            return path
    return None


def with_near_misses(cfg: DataConfig, problem: InputError) -> InputError:
    """The error of a data set that is nowhere, with the prepared file that differs in few options named."""
    near = [(len(d), path, d) for path, made in prepared_files(cfg.name) if (d := differences(made, cfg))]
    if not near:
        return problem
    _, path, options = min(near, key=lambda item: item[0])
    return InputError(f"{cfg.name}: {path} was made with other options; add {' '.join(options)} to use it")
