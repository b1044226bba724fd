"""Reuse of prepared files: `data=cifar10` without a path uses a file of `extract-patches` with the same options."""

import json
from pathlib import Path
from typing import Any

from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.data.locate import data_roots
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_hdf5 import as_text

PREPARABLE = ("cifar10", "cifar100", "mnist")
# Settings that may differ: where the files were, and what is applied when a prepared file is opened.
LATER = ("path", "offline", "half", "part", "ordered", "whiten", "scale_input")


def differences(made: dict[str, Any], cfg: DataConfig) -> list[str]:
    """Return the options in which a prepared file differs from `cfg`, as `data.key=value` of the file."""
    return [
        f"data.{key}={'null' if value is None else value}"
        for key, value in made.items()
        if key not in LATER and getattr(cfg, key, value) != value
    ]


def prepared_files(name: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the prepared files of a data set in the data folders, with their options."""
    from sigmapca_cli.data.cache.prepared import is_prepared, open_prepared

    found = []
    for root in data_roots():
        for path in sorted(root.glob(f"{name}-*.h5")):
            if is_prepared(path):
                with open_prepared(path) as file:
                    found.append((path, json.loads(as_text(file.attrs["options"]))))
    return found


def reusable(cfg: DataConfig) -> Path | None:
    """Return the prepared file to use for this data group, or None."""
    if cfg.name not in PREPARABLE or cfg.path is not None:
        return None
    for path, made in prepared_files(cfg.name):
        if made.get("half", "all") == "all" and made.get("part") is None and not differences(made, cfg):
            return path
    return None


def with_near_misses(cfg: DataConfig, problem: InputError) -> InputError:
    """Return the error for a data set that was not found, naming the prepared file with the fewest other options."""
    near = [(len(d), path, d) for path, made in prepared_files(cfg.name) if (d := differences(made, cfg))]
    if not near:
        return problem
    _, path, options = min(near, key=lambda item: item[0])
    return InputError(
        f"{cfg.name}: {path} was prepared with other options; add {' '.join(options)} to use it"
    )
