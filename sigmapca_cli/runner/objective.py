"""The number that a search is led by (`objective=…`): read from a finished run, or measured where it is not stored."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigmapca_cli.composition.job import Job
from sigmapca_cli.data.halves import halves_of, with_half
from sigmapca_cli.evaluation.agreement import agreement
from sigmapca_cli.storage.read import StoredRun, summary
from sigmapca_cli.storage.write import write_evaluation
from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.untrusted_files import refuse_link

HALVES = "halves"  # in a run's folder: the same settings on two halves of the data


def measure(job: Job, folder: Path) -> list[float]:
    """Return the values of a finished run's objectives, in the order of `cfg.objective`.

    What the run has not stored is measured and stored in its evaluation: `stability` trains two more runs.
    Raise InputError for an objective that this run does not have.
    """
    found = summary(folder)
    for name in job.cfg.objective:
        if name == "stability" and name not in found["evaluation"]:
            write_evaluation(folder, {name: stability(job, folder)})
        if name == "unidentified" and name not in found["evaluation"]:
            write_evaluation(folder, {name: unidentified(job, folder)})
    return stored(folder, job.cfg.objective)


def stored(folder: Path, names: Sequence[str]) -> list[float]:
    """Return the objectives of a finished run from its file. Raise InputError if it lacks one, or has not finished."""
    found = summary(folder)
    if found["attrs"].get("status") != "finished":
        raise InputError(f"{folder}: has not finished")
    values = []
    for name in names:
        value = found["last"].get(name) if name == "loss" else found["evaluation"].get(name)
        if value is None:
            model = found["attrs"].get("model", "")
            raise InputError(f"objective={name}: a run of model={model} with this solver has no {name}")
        values.append(float(value))
    return values


def stability(job: Job, folder: Path) -> float:
    """Return the mean matched |cos| between the filters that two halves of the data give with the job's settings."""
    first, second = (run.filters for run in runs_of_halves(job, folder, halves_of(job.cfg.data).names))
    assert first is not None and second is not None  # both have finished
    return agreement(first, second).mean


def runs_of_halves(job: Job, folder: Path, names: Sequence[str]) -> list[StoredRun]:
    """Return the runs of a job on these halves of its data, in the folder `halves`; an interrupted one is resumed."""
    from sigmapca_cli.runner.run import run

    for place in (folder / HALVES, *(place_of(folder, half) for half in names)):
        refuse_link(place)
    return [StoredRun.open(run(half_job(job, folder, half))) for half in names]


def place_of(folder: Path, half: str) -> Path:
    """Return the folder of the run on one half, such as halves/even or halves/1-of-2."""
    return folder / HALVES / half.replace("/", "-of-")


def half_job(job: Job, folder: Path, half: str) -> Job:
    """Return the job of the same settings on half of the data, in a folder within the run's."""
    plain = copy.deepcopy(job.plain)
    plain["data"] |= with_half(half)
    plain.update(objective=None, tracker=None, run_dir=str(place_of(folder, half)), if_exists="resume")
    cfg = replace(
        job.cfg,
        data=replace(job.cfg.data, **with_half(half)),
        objective=[],
        tracker=[],
        run_dir=plain["run_dir"],
        if_exists="resume",
        strict=False,
    )
    return Job(cfg, plain, job.overrides)


def unidentified(job: Job, folder: Path) -> int:
    """Return how many components of a run the data do not identify, by its certificate."""
    from sigmapca_cli.data import build
    from sigmapca_cli.evaluation.certify import certify_run

    found: Any = certify_run(StoredRun.open(folder), build(job.cfg.data))
    return int((~found.identified).sum())
