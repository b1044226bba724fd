"""A multirun that is a search (`hydra/sweeper=optuna`): what it needs, what is set for it, and its best job."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigmapca_cli.composition.overrides import is_given
from sigmapca_cli.settings.quoting import override
from sigmapca_cli.settings.schema import MAXIMISED, OBJECTIVES, words_of
from sigmapca_cli.system.errors import InputError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

    from sigmapca_cli.launchers.outcome import Outcome


@dataclass(frozen=True)
class Search:
    """A sweep whose sweeper chooses jobs by the results of earlier ones.

    objectives: what leads it; largest: for each, whether more is better; added: the overrides that are set for it.
    """

    sweeper: str
    objectives: list[str]
    largest: list[bool]
    added: list[str]


def search_of(config: Any, given: Sequence[Override]) -> Search | None:
    """Return the search that a sweep's composed configuration asks for; None where Hydra's own sweeper lists the jobs.

    What a search adds are folders by hash, direction, seed, and that failures are tolerated, unless they are set. With
    a seed the same command asks for the same trials in the same order: a search that was killed goes on.
    Raise InputError for a search without an objective, for one that leaves nothing open, and for one whose jobs
    nobody waits for.
    """
    hydra = config.hydra
    sweeper = str(hydra.runtime.choices["hydra/sweeper"])
    if sweeper == "basic":
        refuse_ranges(given)
        return None
    if any(o.key_or_group == "objective" and o.is_sweep_override() for o in given):
        raise InputError("objective: several objectives are a list: 'objective=[stability,loss]'")
    names = words_of(config.objective)
    if not names:
        raise InputError(
            f"hydra/sweeper={sweeper}: say what leads the search, objective={'|'.join(OBJECTIVES)}"
        )
    if hydra.launcher.get("detach"):
        raise InputError(
            f"detach=true: hydra/sweeper={sweeper} waits for the results of its jobs; leave it out"
        )
    if not any(o.is_sweep_override() for o in given) and not hydra.sweeper.get("params"):
        raise InputError(
            "nothing to search over: give a range or choices, as in 'a=interval(1,8)' or k=8,16,32"
        )
    if sweeper == "optuna" and hydra.sweeper.get("storage"):
        refuse_storage(str(hydra.sweeper.storage))
    added = defaults_of(hydra, sweeper, names)
    words = [override(key, value) for key, value in added.items() if not is_given(given, key)]
    if not is_given(given, "hydra.sweep.subdir") and has_default_folder(hydra):
        words.append("hydra.sweep.subdir='${sigmapca_job:}'")
    directions = (
        added.get("hydra.sweeper.direction") if not is_given(given, "hydra.sweeper.direction") else None
    )
    return Search(sweeper, names, larger(directions or hydra.sweeper.get("direction"), names), words)


def refuse_storage(storage: str) -> None:
    """Raise InputError if the Optuna that is installed cannot keep its trials in a database."""
    from importlib.metadata import PackageNotFoundError, version

    with contextlib.suppress(PackageNotFoundError):
        optuna, database = (version(name) for name in ("optuna", "sqlalchemy"))
        if int(optuna.partition(".")[0]) < 3 and int(database.partition(".")[0]) >= 2:
            raise InputError(
                f"hydra.sweeper.storage={storage}: Optuna {optuna} does not work with SQLAlchemy {database}: "
                "pip install 'sqlalchemy<2' 'alembic<1.16'"
            )


def defaults_of(hydra: Any, sweeper: str, names: list[str]) -> dict[str, Any]:
    """Return the keys that a search by Optuna sets where no file has set them."""
    if sweeper != "optuna":
        return {}
    node = hydra.sweeper
    added: dict[str, Any] = {}
    if getattr(node.direction, "name", None) == "minimize":  # the plugin's default
        each = ["maximize" if name in MAXIMISED else "minimize" for name in names]
        added["hydra.sweeper.direction"] = each[0] if len(each) == 1 else each
    if not node.max_failure_rate:
        added["hydra.sweeper.max_failure_rate"] = 1.0  # a failed job is announced, and the others go on
    if "seed" in node.sampler and node.sampler.seed is None:
        added["hydra.sweeper.sampler.seed"] = 0
    return added


def has_default_folder(hydra: Any) -> bool:
    """Return whether no file has named the folders of the jobs."""
    from omegaconf import OmegaConf

    sweep: Any = OmegaConf.to_container(hydra.sweep, resolve=False)
    return bool(sweep["subdir"] == "${hydra.job.num}")


def larger(directions: Any, names: list[str]) -> list[bool]:
    """Return for each objective whether more is better: as the sweeper is told, else by its kind."""
    from omegaconf import ListConfig

    each = list(directions) if isinstance(directions, list | ListConfig) else [directions]
    told = [getattr(one, "name", one) for one in each]
    if len(told) != len(names) or not {"minimize", "maximize"}.issuperset(told):
        return [name in MAXIMISED for name in names]
    return [one == "maximize" for one in told]


def refuse_ranges(given: Sequence[Override]) -> None:
    """Raise InputError for a range without steps, which only a search can take values from."""
    if any(o.is_interval_sweep() for o in given):
        raise InputError(
            "ranges such as interval(1,8) are for a search: add hydra/sweeper=optuna objective=stability"
        )


def silence(search: Search | None) -> None:
    """Keep a sweeper from printing lines of its own: failed jobs are announced here already."""
    import logging

    logging.getLogger("hydra_plugins").setLevel(logging.CRITICAL)
    if search and search.sweeper == "optuna":
        with contextlib.suppress(ImportError):  # Hydra says in one line that the plugin is not installed
            from optuna import logging as of_optuna

            of_optuna.set_verbosity(logging.WARNING)


def best_lines(sweep: Path, jobs: Sequence[Outcome], search: Search, common: Collection[str]) -> list[str]:
    """Return a line for each objective of a search: its best value, and the job that has it."""
    from sigmapca_cli.runner.objective import stored
    from sigmapca_cli.storage.find import shortened
    from sigmapca_cli.storage.read import StoredRun

    found: dict[str, list[float]] = {}
    for job in jobs:
        if job.status == "finished":
            with contextlib.suppress(InputError):
                found[job.number] = stored(sweep / job.number, search.objectives)
    lines = []
    for i, name in enumerate(search.objectives if found else ()):
        values = {number: each[i] for number, each in found.items()}
        best = (max if search.largest[i] else min)(values, key=values.__getitem__)
        own = " ".join(given for given in StoredRun.open(sweep / best).overrides if given not in common)
        lines.append(f"  best {name} {values[best]:.6g}: {own}\n    {shortened(sweep / best)}")
    return lines
