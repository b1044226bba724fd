"""What one value of a configuration makes of another key: a table of rules, which say why a run does not read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sigmapca_cli.data.config import kinds_of
from sigmapca_cli.methods.direct import SETTINGS
from sigmapca_cli.runner.plan import SOLVERS, is_on_cpu, is_read, named
from sigmapca_cli.settings.conf_files import keys_of_choices
from sigmapca_cli.settings.schema import Config
from sigmapca_cli.settings.ways import Way, way_of


class Why(NamedTuple):
    """Why a key is not read, and what to do about one that was typed.

    here: whether only a run on this machine does not read it: it is said, not refused.
    """

    reason: str
    advice: str = "leave it out"
    here: bool = False


Rule = Callable[[Config], Why | None]


def of_no_use(who: str) -> Why:
    """Return why nobody reads a key: `who` has no such setting."""
    return Why(f"{who} has no use for this")


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


def why_no_choice_of_a(cfg: Config) -> Why | None:
    """Return why `solver.a_from` is not read: a is given, or can only be chosen on the way."""
    if cfg.a != "auto":
        return Why(f"a={cfg.a} is given", "give a=auto with it")
    if cfg.chooses_a_first or way_of(cfg) is not Way.STEPS:
        return None
    h = cfg.nonlinearity
    return Why(f"model={cfg.model.name} with {h.name}, derivative {h.derivative}, chooses a at each step")


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
    """Return why `solver.starts` is not read: an answer has starts of its own, or all start at one answer."""
    way = way_of(cfg)
    if way is Way.STEPS and cfg.init == "independence":
        return Why(
            "init=independence has as many starts as it needs", "leave it out, or use solver=independence"
        )
    if way is Way.INDEPENDENCE and cfg.data.name in kinds_of("pixels") and cfg.init == "pca":
        return Why("image patches start at the answer of solver=moments", "give init=orthogonal with it")
    return None


def why_no_outputs(cfg: Config) -> Why | None:
    """Return why `outputs` is not read: the run has a folder of its own, and no tracker writes beside it."""
    if cfg.run_dir and not set(cfg.tracker) - {"none"}:
        return Why(f"run_dir={cfg.run_dir} says where the run is", ONE)
    return None


def why_no_precision(cfg: Config) -> Why | None:
    """Return why `precision` is not read: it is about the products of a GPU."""
    if cfg.precision == "highest" or not is_read(way_of(cfg), "precision") or not is_on_cpu(cfg):
        return None
    if cfg.device == "cpu":
        return Why("device=cpu has one precision")
    return Why(f"device={cfg.device} is the CPU here, which has one precision", here=True)


def why_no_path(cfg: Config) -> Why | None:
    """Return why no path is read: this kind of data has none, and which kind the path is of."""
    from sigmapca_cli.data.describe.recognise import kind_of_path
    from sigmapca_cli.system.errors import InputError

    if "path" in keys_of_choices("data").get(cfg.data.name, ("path",)):
        return None
    try:
        kind = kind_of_path(str(cfg.data.path))
    except InputError:
        return Why(f"data={cfg.data.name} reads no file", "name the kind of the file too, such as data=array")
    return Why(f"data={cfg.data.name} reads no file", f"add data={kind}, which reads it")


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
    "solver.a_from": why_no_choice_of_a,
    "data.path": why_no_path,
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
