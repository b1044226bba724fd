"""A Typer command in front of a real `hydra.main` job.

The command line is rebuilt for Hydra, overrides first and flags last, so that multirun, `--cfg`, `--info`,
`--config-dir` and every launcher keep working; what Hydra refuses before the job begins becomes one line.
"""

import contextlib
import io
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigmapca_cli.checks import choice
from sigmapca_cli.conf_files import conf_folder, hydra_base
from sigmapca_cli.errors import InputError, SigmapcaError


def hydra_flags(
    *,
    multirun: bool = False,
    cfg: str | None = None,
    resolve: bool = False,
    package: str | None = None,
    info: str | None = None,
    config_name: str | None = None,
    config_dir: str | None = None,
    config_path: str | None = None,
) -> list[str]:
    """Hydra's own flags, spelled as its parser wants them; values it would answer with a page are refused here."""
    for flag, value, allowed in (
        ("--cfg", cfg, ("job", "hydra", "all")),
        ("--info", info, ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")),
    ):
        if value is not None:
            choice(flag, value, allowed)
    if config_path is not None:
        if not Path(config_path).is_dir():
            raise InputError(f"--config-path {config_path}: no such folder")
        config_path = str(Path(config_path).absolute())  # from here, not from inside the package
    flags = ["--multirun"] if multirun else []
    for name, value in (
        ("--cfg", cfg),
        ("--package", package),
        ("--info", info),
        ("--config-name", config_name),
        ("--config-dir", config_dir),
        ("--config-path", config_path),
    ):
        if value is not None:
            flags += [name, value]
    return flags + (["--resolve"] if resolve else [])


def register_launcher(overrides: list[str]) -> None:
    """Make a launcher of ours known to Hydra where it is asked for: slurm needs submitit, which is an extra."""
    import importlib

    for name in ("slurm", "vectorized"):
        if f"hydra/launcher={name}" in overrides:
            importlib.import_module(f"sigmapca_cli.launchers.{name}").register()


def run_job(
    task: Callable[..., Any],
    overrides: list[str],
    flags: list[str],
    config_name: str = "config",
    conf: Path | None = None,
) -> None:
    """Hand overrides and flags to `hydra.main` around `task`, a module-level function of the composed config."""
    import hydra

    from sigmapca_cli.additions import refuse_unknown_additions
    from sigmapca_cli.checks import nearest
    from sigmapca_cli.cli.guard import ended
    from sigmapca_cli.cli.targets import refuse_code
    from sigmapca_cli.config import GROUPS, register
    from sigmapca_cli.hydra_errors import one_line
    from sigmapca_cli.launchers import adaptive

    register()
    register_launcher(overrides)
    adaptive.register()
    refuse_unknown_additions(overrides)
    for flag, given in itertools.pairwise(flags):
        if flag in ("--config-dir", "--config-path"):
            refuse_code(Path(given))
    # Hydra would print its own many-line explanation and exit 1; raised, it can be put into one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    before = sys.argv
    sys.argv = ["sigmapca", *overrides, *flags]
    ended.problem = None
    # For `--package nosuch` it has words of its own, which it prints before it leaves.
    unheard = contextlib.redirect_stderr(io.StringIO()) if "--package" in flags else contextlib.nullcontext()
    main = hydra.main(**hydra_base(), config_path=str(conf or conf_folder()), config_name=config_name)
    try:
        with unheard:
            main(task)()
    except (SigmapcaError, KeyboardInterrupt):
        raise
    except SystemExit:
        if "--package" not in flags:
            raise
        name = flags[flags.index("--package") + 1]
        raise InputError(
            f"--package {name}: no such part of the configuration{nearest(name, GROUPS)}"
        ) from None
    except Exception as problem:
        message = one_line(problem, overrides)
        if message is None or os.environ.get("SIGMAPCA_DEBUG"):
            raise
        raise InputError(message) from None
    finally:
        sys.argv = before
    if isinstance(ended.problem, OverflowError):
        raise InputError(one_line(ended.problem, overrides) or str(ended.problem)) from ended.problem
    if ended.problem is not None:
        raise ended.problem
