"""Sweeps whose next jobs depend on the results of earlier ones (`hydra/sweeper=optuna`): their folders and results.

Jobs of such a sweep go by the hash of their configuration, not by their number: the trial of a number is another one
as soon as the search is changed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sigmapca_cli.system.errors import InputError

RESOLVER = "sigmapca_job"
DIGITS = 10  # of a folder's name: 4,000 jobs share one with a probability below 10⁻⁵


def register() -> None:
    """Make `${sigmapca_job:}`, the name of a job's folder, known to OmegaConf in this process."""
    from inspect import signature

    from omegaconf import OmegaConf

    known: Any = OmegaConf
    # OmegaConf 2.4 renames the function; 2.3 has a deprecated one under the new name.
    renamed = "replace" in signature(known.register_resolver).parameters
    (known.register_resolver if renamed else known.register_new_resolver)(RESOLVER, job_name, replace=True)


def job_name(*, _root_: Any) -> str:
    """Return the first digits of the hash of a composed configuration, of its overrides if it is not complete."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from sigmapca_cli.composition.job import job_from

    plain: Any = OmegaConf.to_container(_root_, resolve=False)
    hydra = plain.pop("hydra")
    try:
        whole: Any = OmegaConf.to_container(OmegaConf.create(plain), resolve=True, throw_on_missing=True)
        return job_from(whole).hash[:DIGITS]
    except (OmegaConfBaseException, InputError):  # the job itself says what is wrong with it
        text = "\0".join(map(str, hydra["overrides"]["task"]))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def result_of(folder: Path, objective: Sequence[str]) -> float | list[float] | None:
    """Return what a job gives back to the sweeper, read from its folder; None if it has not finished."""
    from sigmapca_cli.runner.objective import stored

    try:
        return as_result(stored(folder, objective)) if objective else None
    except InputError:
        return None


def as_result(values: Sequence[float]) -> float | list[float] | None:
    """Return one number, or a list for several objectives; None if one of them is not finite."""
    if not values or not all(math.isfinite(value) for value in values):
        return None
    return values[0] if len(values) == 1 else list(values)
