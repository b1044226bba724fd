"""A multirun that is a search (`hydra/sweeper=optuna`): what it needs, what is set for it, and its best job."""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from sigmapca_cli.config import MAXIMISED, OBJECTIVES
from sigmapca_cli.errors import InputError
from sigmapca_cli.launchers.outcome import Outcome


def value_of(overrides: list[str], key: str) -> str | None:
    """The value that the last override of a key gives, without quotes."""
    found = [o.partition("=")[2].strip("'\"") for o in overrides if o.partition("=")[0] == key]
    return found[-1] if found else None


def adaptive_sweeper(overrides: list[str]) -> str:
    """Return the name of the sweeper that chooses jobs by the results of earlier ones; "" for Hydra's own."""
    name = value_of(overrides, "hydra/sweeper") or ""
    return "" if name == "basic" else name


def objectives(overrides: list[str]) -> list[str]:
    """Return the names that `objective=` gives. Raise InputError for names that are no list in brackets."""
    text = value_of(overrides, "objective") or ""
    if "," in text and not text.startswith("["):
        raise InputError(f"objective={text}: write several as a list, objective=[{text}]")
    return [word for word in re.split(r"[\s,\[\]'\"]+", text) if word and word not in ("null", "None")]


def search_defaults(overrides: list[str]) -> list[str]:
    """Return the overrides that a search adds to those given: folders by hash, direction, seed, tolerance of failures.

    With a seed the same command asks for the same trials in the same order: a search that was killed goes on.
    Raise InputError for a search without an objective, and for one whose jobs nobody waits for.
    """
    sweeper = adaptive_sweeper(overrides)
    if not sweeper:
        return []
    names = objectives(overrides)
    if not names:
        raise InputError(
            f"hydra/sweeper={sweeper}: say what leads the search, objective={'|'.join(OBJECTIVES)}"
        )
    if (value_of(overrides, "hydra.launcher.detach") or "").lower() in ("true", "1", "yes", "on"):
        raise InputError(
            f"detach=true: hydra/sweeper={sweeper} waits for the results of its jobs; leave it out"
        )
    added = {"hydra.sweep.subdir": "'${sigmapca_job:}'"}
    if sweeper == "optuna":
        each = ["maximize" if name in MAXIMISED else "minimize" for name in names]
        added["hydra.sweeper.direction"] = each[0] if len(each) == 1 else f"[{','.join(each)}]"
        added["hydra.sweeper.max_failure_rate"] = "1.0"  # a failed job is announced, and the others go on
        if value_of(overrides, "hydra/sweeper/sampler") != "grid":
            added["hydra.sweeper.sampler.seed"] = "0"
    return [f"{key}={value}" for key, value in added.items() if value_of(overrides, key) is None]


def refuse_nothing_to_search(overrides: list[str]) -> None:
    """Raise InputError for a search whose overrides leave nothing open; a file of Hydra's may do that too."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if not adaptive_sweeper(overrides) or any(
        given.startswith("hydra.sweeper.params") for given in overrides
    ):
        return
    with contextlib.suppress(HydraException):  # which Hydra itself reports
        parsed = OverridesParser.create().parse_overrides(overrides)
        if not any(override.is_sweep_override() for override in parsed):
            raise InputError(
                "nothing to search over: give a range or choices, as in 'a=interval(1,8)' or k=8,16,32"
            )


def silence(overrides: list[str]) -> None:
    """Keep a sweeper from printing lines of its own: failed jobs are announced here already."""
    import logging

    logging.getLogger("hydra_plugins").setLevel(logging.CRITICAL)
    if adaptive_sweeper(overrides) == "optuna":
        with contextlib.suppress(ImportError):  # Hydra says in one line that the plugin is not installed
            from optuna import logging as of_optuna

            of_optuna.set_verbosity(logging.WARNING)


def ended_by(text: str) -> bool:
    """Return whether an exception of the sweeper only says that the search is over: its jobs have said how they ended.

    Optuna's plugin raises if no trial has a value, and if the last cell of a grid is a failed job.
    """
    return "No trials are completed" in text or "`Study.stop` is supposed to be invoked" in text


def best_lines(sweep: Path, jobs: Sequence[Outcome], overrides: list[str]) -> list[str]:
    """Return a line for each objective of a search: its best value, and the job that has it."""
    names = objectives(overrides) if adaptive_sweeper(overrides) else []
    if not names:
        return []
    from sigmapca_cli.runner.objective import stored
    from sigmapca_cli.runs.find import shortened
    from sigmapca_cli.runs.read import Run

    found: dict[str, list[float]] = {}
    for job in jobs:
        if job.status == "finished":
            with contextlib.suppress(InputError):
                found[job.number] = stored(sweep / job.number, names)
    if not found:
        return []
    directions = re.findall("minimize|maximize", value_of(overrides, "hydra.sweeper.direction") or "")
    lines = []
    for i, name in enumerate(names):
        largest = directions[i] == "maximize" if len(directions) == len(names) else name in MAXIMISED
        values = {number: each[i] for number, each in found.items()}
        best = (max if largest else min)(values, key=values.__getitem__)
        own = " ".join(given for given in Run.open(sweep / best).overrides if given not in overrides)
        lines.append(f"  best {name} {values[best]:.6g}: {own}\n    {shortened(sweep / best)}")
    return lines
