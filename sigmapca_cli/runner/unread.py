"""Keys that a run does not read: typed, they are refused; from a file of an experiment or a stored run, they are said.

A way's keys stand in the rows of `plan`, the keys of a choice in its file of `conf/`; here is what one value makes of
another key. A key of which none of them knows is read by every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sigmapca_cli.composition.job import Job
from sigmapca_cli.composition.keys import typed
from sigmapca_cli.data.config import kinds_of
from sigmapca_cli.methods.direct import SETTINGS
from sigmapca_cli.runner.plan import SOLVERS, is_read, named
from sigmapca_cli.settings.checks import as_text
from sigmapca_cli.settings.conf_files import keys_of_choices
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import Way, way_of
from sigmapca_cli.system.errors import InputError


class Why(NamedTuple):
    """Why a key is not read, and what to do about one that was typed."""

    reason: str
    advice: str = "leave it out"


Rule = Callable[[Config], Why | None]

BY_CHOICE = ("data", "solver", "nonlinearity", "sigma", "ordering", "optimizer")
"""The groups whose files name the keys of each choice; a key that none of them names belongs to all."""


def refuse_unread(job: Job) -> list[str]:
    """Raise InputError for typed keys that this run does not read; return a line for those of its experiment."""
    given = typed(job.overrides)
    if ignored := unread(job.cfg, given):
        raise InputError(refusal(given, ignored))
    kept = {key: f"{key}={as_text(value_of(job.cfg, key))}" for key in job.experiment if key not in given}
    name = next((word for key, word in given.items() if key == "experiment.name"), "experiment")
    return [f"{name}: {line}" for line in said(kept, unread(job.cfg, kept))]


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


def of_no_use(who: str) -> Why:
    """Return why nobody reads a key: `who` has no such setting."""
    return Why(f"{who} has no use for this")


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


ONE = "leave one of them out"
OF_ONE_LAYER = (
    "a",
    "nonlinearity.a",
    "nonlinearity.name",
    "nonlinearity.derivative",
    "solver.polish",
    "init",
)


def solves_whitened(cfg: Config) -> bool:
    """Return whether Newton's steps solve linear ICA, whose second layer has a function and a start of its own."""
    return way_of(cfg) is Way.NEWTON and cfg.model.family == "linear_ica"


def why_no_scale(cfg: Config) -> Why | None:
    """Return why no scale a is read: the nonlinearity has none."""
    if "a" in keys_of_choices("nonlinearity").get(cfg.nonlinearity.name, ("a",)):
        return None
    if not is_read(way_of(cfg), "a") or solves_whitened(cfg):
        return None  # the way says so itself
    name = cfg.nonlinearity.name
    return Why(f"nonlinearity={name} has no scale", "leave it out, or use nonlinearity=scaled_tanh")


def why_no_a(cfg: Config) -> Why | None:
    """Return why a is not read: there is no scale, or the nonlinearity's own takes its place."""
    if cfg.a != cfg.nonlinearity.a:
        return Why(f"nonlinearity.a={cfg.nonlinearity.a} takes its place", ONE)
    return why_no_scale(cfg)


def why_no_start(cfg: Config) -> Why | None:
    """Return why `init` makes no difference."""
    way = way_of(cfg)
    if way in SOLVERS and SOLVERS[way].starts and cfg.init not in SOLVERS[way].starts:
        choices = ", ".join(SOLVERS[way].starts)
        return Why(f"{named(cfg)} starts from the principal axes then", f"choose one of {choices}")
    return None


def why_no_epochs(cfg: Config) -> Why | None:
    """Return why `epochs` is not read."""
    return Why(f"steps={cfg.steps} says how long the run is", ONE) if cfg.steps else None


def why_no_bound(cfg: Config) -> Why | None:
    """Return why `max_steps` is not read, which bounds a run that decides by itself when it is done."""
    if cfg.steps or cfg.epochs is None:
        return why_no_epochs(cfg)
    return Why(f"epochs={cfg.epochs:g} says how long the run is", "give epochs=null with it, or leave it out")


def why_no_device(cfg: Config) -> Why | None:
    """Return why `device` is not read: what is solved at once is solved on the CPU."""
    if way_of(cfg) in SOLVERS and cfg.device not in ("auto", "cpu"):
        return Why(f"{named(cfg)} computes on the CPU")
    return None


def why_no_choice(cfg: Config) -> Why | None:
    """Return why nothing is drawn among pictures."""
    if cfg.data.name in kinds_of("pixels") and cfg.data.select == "first":
        more = "give data.images=N data.select=random with it, or leave it out"
        return Why("data.select=first draws nothing", more)
    return why_all_pictures(cfg)


def why_all_pictures(cfg: Config) -> Why | None:
    """Return why nothing is chosen among pictures: all are read."""
    if cfg.data.name in kinds_of("pixels") and cfg.data.images is None:
        return Why("all pictures are read", "give data.images=N with it, or leave it out")
    return None


def why_no_text(cfg: Config) -> Why | None:
    """Return why nothing says how text is to be read: the files hold none."""
    from sigmapca_cli.data.readers.array_files import BINARY_SUFFIXES

    paths = cfg.data.path if isinstance(cfg.data.path, list | tuple) else [cfg.data.path]
    suffixes = {Path(str(path)).suffix.lower() for path in paths if path is not None}
    if cfg.data.name == "array" and suffixes and suffixes <= BINARY_SUFFIXES:
        return Why(f"{' and '.join(sorted(suffixes))} files are not text")
    return None


def why_no_ending(cfg: Config) -> Why | None:
    """Return why `ending` is not read: the run does not go on until it has converged."""
    if cfg.steps or cfg.epochs is not None:
        return why_no_epochs(cfg) or Why(f"epochs={cfg.epochs:g} says how long the run is", ONE)
    return Why(f"keep={cfg.keep} keeps what the stage left", ONE) if cfg.keep != "last" else None


def why_no_starts(cfg: Config) -> Why | None:
    """Return why `solver.starts` is not read: steps begin at an answer that has starts of its own."""
    if way_of(cfg) is Way.STEPS and cfg.init == "independence":
        return Why(
            "init=independence has as many starts as it needs", "leave it out, or use solver=independence"
        )
    return None


def why_no_outputs(cfg: Config) -> Why | None:
    """Return why `outputs` is not read: the run has a folder of its own, and no tracker writes beside it."""
    if cfg.run_dir and not set(cfg.tracker) - {"none"}:
        return Why(f"run_dir={cfg.run_dir} says where the run is", ONE)
    return None


def why_no_precision(cfg: Config) -> Why | None:
    """Return why `precision` is not read: it is about the products of a GPU."""
    return Why("device=cpu has one precision") if cfg.device == "cpu" and cfg.precision != "highest" else None


def of_files(cfg: Config) -> Why | None:
    """Return why what makes signals is not read: they are read from files."""
    if cfg.data.name == "signals" and cfg.data.path is not None:
        return Why("the signals of data.path are as they are", ONE)
    return None


def of_made_signals(cfg: Config) -> Why | None:
    """Return why `data.mix` is not read: made signals are mixed."""
    if cfg.data.name == "signals" and cfg.data.path is None:
        return Why("it is about WAV files", "give data.path=FOLDER with it")
    return None


def of_mixing(cfg: Config) -> Why | None:
    """Return why what mixes signals is not read: they are mixtures already."""
    if cfg.data.name == "signals" and cfg.data.path is not None and not cfg.data.mix:
        return Why("data.mix=false mixes nothing")
    return None


def of_algorithm(name: str) -> Rule:
    """Return the rule for a setting of closed forms and iterations, which only some of them have."""

    def why(cfg: Config) -> Why | None:
        if way_of(cfg) is Way.DIRECT and name not in SETTINGS.get(cfg.model.objective, ()):
            return of_no_use(f"model={cfg.model.name}")
        return None

    return why


RULES: dict[str, Rule] = {
    "a": why_no_a,
    "nonlinearity.a": why_no_scale,
    "init": why_no_start,
    "init_file": lambda cfg: (
        None if cfg.init == "file" else Why(f"init={cfg.init} reads none", "give init=file with it")
    ),
    "epochs": why_no_epochs,
    "max_steps": why_no_bound,
    "device": why_no_device,
    "precision": why_no_precision,
    "ending": why_no_ending,
    "outputs": why_no_outputs,
    "solver.starts": why_no_starts,
    "solver.a_from": lambda cfg: (
        None if cfg.a == "auto" else Why(f"a={cfg.a} is given", "give a=auto with it")
    ),
    "data.select": why_all_pictures,
    **dict.fromkeys(("data.delimiter", "data.encoding", "data.decimal"), why_no_text),
    "checkpoint.every": lambda cfg: (
        Why("checkpoint.every_steps says when", ONE) if cfg.checkpoint.every_steps else None
    ),
    "data.seed": lambda cfg: why_no_choice(cfg) or of_mixing(cfg),
    "data.variant": of_mixing,
    "data.noise": of_files,
    "data.duration": of_files,
    "data.mix": of_made_signals,
    **{f"model.{name}": of_algorithm(name) for name in ("fun", "max_iter", "tolerance", "varimax")},
}
"""Dotted key: why other values make it one that is not read, or None."""
