"""A job from overrides, composed by Hydra within a program: what `sigmapca train` does through `hydra.main`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from sigmapca_cli import conf_files
from sigmapca_cli.additions import refuse_unknown_additions
from sigmapca_cli.config import register
from sigmapca_cli.errors import InputError, SigmapcaError
from sigmapca_cli.hydra_errors import one_line
from sigmapca_cli.job import Job, job_of


def compose_job(overrides: Sequence[str]) -> Job:
    """Return the job of these overrides. Raise InputError, in one line, for those that Hydra or the schema refuses.

    The program may be an application of Hydra's itself: its own state is put aside meanwhile.
    """
    from hydra import compose, initialize_config_dir

    words = list(overrides)
    register()
    refuse_unknown_additions(words)
    try:
        with own_hydra(), initialize_config_dir(str(conf_files.conf_folder()), **conf_files.hydra_base()):
            made = job_of(compose("config", words))
    except SigmapcaError:
        raise
    except Exception as problem:
        message = one_line(problem, words)
        if message is None:
            raise
        raise InputError(message) from None
    made.overrides = words
    return made


@contextlib.contextmanager
def own_hydra() -> Iterator[None]:
    """Hide the configuration and the state of an application of Hydra's that surrounds this block."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.singleton import Singleton

    instances: dict[type, Any] = Singleton._instances
    kept: dict[type, Any] = {
        kind: instances.pop(kind) for kind in (GlobalHydra, HydraConfig) if kind in instances
    }
    try:
        yield
    finally:
        for kind in (GlobalHydra, HydraConfig):
            instances.pop(kind, None)
        instances.update(kept)
