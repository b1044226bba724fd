"""Keys that a run does not read: typed, they are refused; from a file of an experiment or a stored run, they are said.

A way's keys stand in the rows of `plan`, the keys of a choice in its file of `conf/`, and what one value makes of
another key in `rules`. A key of which none of them knows is read by every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sigmapca_cli.composition.job import Job
from sigmapca_cli.composition.overrides import typed
from sigmapca_cli.runner.plan import is_read, named
from sigmapca_cli.runner.rules import OF_ONE_LAYER, RULES, Why, of_no_use, solves_whitened, why_no_start
from sigmapca_cli.settings.checks import as_text
from sigmapca_cli.settings.conf_files import keys_of_choices
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import way_of
from sigmapca_cli.system.errors import InputError

BY_CHOICE = ("data", "solver", "nonlinearity", "sigma", "ordering", "optimizer")
"""The groups whose files name the keys of each choice; a key that none of them names belongs to all."""


def refuse_unread(job: Job) -> list[str]:
    """Raise InputError for typed keys that this run does not read; return a line for those of its experiment.

    Another line is for those that only a run on this machine does not read.
    """
    given = typed(job.overrides)
    ignored = unread(job.cfg, given)
    if refused := {key: why for key, why in ignored.items() if not why.here}:
        raise InputError(refusal(given, refused))
    kept = {key: f"{key}={as_text(value_of(job.cfg, key))}" for key in job.experiment if key not in given}
    name = next((word for key, word in given.items() if key == "experiment.name"), "experiment")
    return [*said(given, ignored), *(f"{name}: {line}" for line in said(kept, unread(job.cfg, kept)))]


def refuse_all_but(reads: tuple[str, ...], job: Job, who: str) -> None:
    """Raise InputError for typed keys that a command does not read, which reads `data` and these keys and groups."""
    given = typed(job.overrides)
    ignored: dict[str, Why] = {}
    for key in given:
        group = key.split(".")[0]
        if group == "data":
            ignored |= unread(job.cfg, [key])
        elif key not in reads and group not in reads:
            ignored[key] = of_no_use(who)
    if ignored:
        raise InputError(refusal(given, ignored))


def said_of_stored(job: Job) -> list[str]:
    """Return a line for the keys that were typed for a stored run, and that it does not read."""
    given = typed(job.overrides)
    return said(given, unread(job.cfg, given))


def unread(cfg: Config, keys: Iterable[str]) -> dict[str, Why]:
    """Return {key: why} for those of these dotted keys that a run of this configuration does not read.

    A key without a value (null) asks for nothing.
    """
    found = {key: why_unread(cfg, key) for key in keys if value_of(cfg, key) is not None}
    return {key: why for key, why in found.items() if why}


def said(given: Mapping[str, str], ignored: Mapping[str, Why]) -> list[str]:
    """Return one line for each reason, with the overrides that it is about."""
    words: dict[str, list[str]] = {}
    for key, why in ignored.items():
        words.setdefault(why.reason, []).append(given[key])
    return [f"{', '.join(each)}: {reason}" for reason, each in words.items()]


def refusal(given: Mapping[str, str], ignored: Mapping[str, Why]) -> str:
    """Return the line that refuses the first of the keys that are not read, and those that share its reason."""
    return f"{said(given, ignored)[0]}; {next(iter(ignored.values())).advice}"


def why_unread(cfg: Config, key: str) -> Why | None:
    """Return why a run of this configuration does not read a dotted key, and what to do; None if it does."""
    group = key.split(".")[0]
    if key in RULES and (why := RULES[key](cfg)):
        return why
    if not is_read(way_of(cfg), key) or (key in OF_ONE_LAYER and solves_whitened(cfg)):
        who = f"model={cfg.model.name}" if group == "model" else named(cfg)
        return of_no_use(who)
    if group in BY_CHOICE and not of_choice(cfg, group, key.split(".")[-1]):
        return of_no_use(f"{group}={getattr(cfg, group).name}")
    return None


def of_choice(cfg: Config, group: str, name: str) -> bool:
    """Return whether a key of a group belongs to the choice of this configuration, or to all choices."""
    files = keys_of_choices(group)
    chosen = {getattr(cfg, group).name}
    if group == "solver" and why_no_start(cfg) is None:
        chosen.add(cfg.init)  # init=moments and init=independence solve first
    named_by = {choice for choice, keys in files.items() if name in keys}
    return not named_by or bool(named_by & chosen) or not chosen & files.keys()


def value_of(cfg: Config, key: str) -> Any:
    """Return the value of a dotted key; of one that is in no schema, such as a regulariser's, the key itself."""
    node: Any = cfg
    for name in key.split("."):
        node = node.get(name, key) if isinstance(node, Mapping) else getattr(node, name, key)
    return node
