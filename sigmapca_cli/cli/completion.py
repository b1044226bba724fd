"""Completion for bash, zsh and fish: what may stand at the cursor, from `conf/`, the outputs folder and the options.

A shell calls `sigmapca` with the words up to the cursor, the last one unfinished, and `_SIGMAPCA_COMPLETE` set; one
candidate a line is the answer, with a description behind a tab. No candidate means: complete file names. Nothing
heavy is imported, so that an answer takes as long as `sigmapca --help`.
"""

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from sigmapca_cli.cli.plot import FIGURES
from sigmapca_cli.cli.sample import FIELDS

SHELLS = ("bash", "zsh", "fish")
Candidates = Iterable[tuple[str, str]]


def complete(shell: str, words: list[str]) -> None:
    """Print the candidates; never anything else, whatever goes wrong: the user is in the middle of a line."""
    words = rejoined(words) if shell == "bash" else words
    before, word = words[:-1], words[-1] if words else ""
    found = [(value, about) for value, about in candidates(before, word) if value.startswith(word)]
    # Bash replaces only what follows the last word break.
    cut = len(word.rpartition("=")[0]) + 1 if shell == "bash" and "=" in word else 0
    for value, about in found:
        print(value[cut:] if shell == "bash" or not about else f"{value}\t{about}")


def rejoined(words: list[str]) -> list[str]:
    """Bash breaks words at = and : and hands over `model=nl` as three."""
    whole: list[str] = []
    glue = False
    for word in words:
        sign = bool(word) and not word.strip("=:")
        if whole and (glue or sign):
            whole[-1] += word
        else:
            whole.append(word)
        glue = sign
    return whole


def candidates(before: list[str], word: str) -> Candidates:
    """What may stand at `word`, (value, description), after the words before it."""
    from typer.main import get_command

    from sigmapca_cli.cli.app import app

    root: Any = get_command(app)
    name = next((given for given in before if given in root.commands), "")
    command = root.commands.get(name, root)
    after = before[before.index(name) + 1 :] if name else before
    taking = {flag: option.name for option in command.params for flag in option.opts if takes_value(option)}
    if after and after[-1] in taking:
        return values(name, taking[after[-1]], word)
    flag, sign, _ = word.partition("=")
    if sign and flag in taking:
        return [(f"{flag}={v}", about) for v, about in values(name, taking[flag], word)]
    if word.startswith("-"):
        return options(command)
    if not name:
        return commands(root)
    plain = [
        given
        for i, given in enumerate(after)
        if not given.startswith("-") and (i == 0 or after[i - 1] not in taking)
    ]
    return argument(name, command, len(plain), word)


def argument(name: str, command: Any, given: int, word: str) -> Candidates:
    """Values of the positional argument that is next; the last one may take any number."""
    positional = [p for p in command.params if p.param_type_name == "argument"]
    if not positional or (given >= len(positional) and positional[-1].nargs != -1):
        return []
    return values(name, positional[min(given, len(positional) - 1)].name, word)


def takes_value(parameter: Any) -> bool:
    """Whether a word follows this option."""
    return parameter.param_type_name == "option" and not parameter.is_flag


def commands(root: Any) -> Candidates:
    """The commands with the first sentence of their help."""
    return [(name, one_line(command.help)) for name, command in root.commands.items()]


def options(command: Any) -> Candidates:
    """The long options of a command."""
    found = [p for p in command.params if p.param_type_name == "option"]
    return [(flag, one_line(p.help)) for p in found for flag in p.opts if flag.startswith("--")] + [
        ("--help", "Show the options.")
    ]


def one_line(text: str | None) -> str:
    """A description that a shell can show beside a candidate."""
    return " ".join((text or "").split())


def words(*names: str) -> Callable[[str], Candidates]:
    """A fixed list."""
    return lambda word: [(name, "") for name in names]


def values(command: str, parameter: str | None, word: str) -> Candidates:
    """Values of an argument or option; none where it is a file, a number or free text."""
    kind = CANDIDATES.get(f"{command}.{parameter}", CANDIDATES.get(parameter or ""))
    return kind(word) if kind else []


def runs(word: str) -> Candidates:
    """`last`, then folder names, newest first; hashes where no name begins like the word."""
    from sigmapca_cli.storage.folders import FOLDER_NAME, age_key, run_folders, short_name

    folders = sorted(run_folders(), key=age_key, reverse=True)
    if not folders:
        return []
    named = [(short_name(folder), folder.parent.name) for folder in folders]
    found = [("last", "the newest run"), *named]
    if any(name.startswith(word) for name, _ in found):
        return found
    matches = [(FOLDER_NAME.match(f.name), f) for f in folders]
    return [(match[2], f.parent.name) for match, f in matches if match]


def models(word: str) -> Candidates:
    """The catalogue's names."""
    from sigmapca_cli.settings.conf_files import groups

    return [(name, "") for name in groups()["model"]]


def experiments(word: str) -> Candidates:
    """What `reproduce` knows: the experiments of `conf/`, and `theory`, which runs nothing."""
    from sigmapca_cli.settings.conf_files import groups

    return [(name, "") for name in (*groups()["experiment"], "theory")]


def overrides(word: str) -> Candidates:
    """`group=` and `key=`; behind the sign the choices, also for each further one of a sweep (model=a,b)."""
    key, sign, value = word.partition("=")
    plus = "+" if key.startswith("+") else ""
    if sign:
        begun = value.rpartition(",")
        return [(f"{key}={begun[0]}{begun[1]}{choice}", "") for choice in choices(key.lstrip("+"))]
    nested = "." in key
    from sigmapca_cli.settings.conf_files import all_groups
    from sigmapca_cli.settings.keys import known_keys

    keys = [name for name in known_keys() if ("." in name) == nested]
    groups = [] if nested else [name for name in all_groups() if name not in keys]
    return [(f"{plus}{name}=", "") for name in [*groups, *keys]]


def choices(key: str) -> list[str]:
    """The values a group or key can take, where they are few."""
    from sigmapca_cli.data.config import CHOICES as DATA_CHOICES
    from sigmapca_cli.data.config import DataConfig
    from sigmapca_cli.settings.conf_files import all_groups
    from sigmapca_cli.settings.schema import CHOICES, K_WORDS, OBJECTIVES, TRACKERS, Config

    groups = all_groups()
    if key in groups:
        return groups[key]
    section, _, name = key.rpartition(".")
    known = {"": CHOICES, "data": DATA_CHOICES}.get(section, {})
    if name in known:
        return list(known[name])
    # Keys whose choices are not all there is to them.
    beside = {
        "device": ("auto", "cpu", "cuda"), "a": ("auto",), "k": K_WORDS, "objective": OBJECTIVES,
        "tracker": ("none", *TRACKERS),
    }  # fmt: skip
    if not section and name in beside:
        return list(beside[name])
    kind: Any = {"": Config, "data": DataConfig}.get(section)
    field = kind and kind.__dataclass_fields__.get(name)
    return ["true", "false"] if field and field.type is bool else []


def data_keys(word: str) -> Candidates:
    """The keys of the data group alone, for commands that read a file."""
    return [found for found in overrides(word or "data.") if found[0].startswith("data.")]


# By parameter, or by command and parameter where a name means different things.
CANDIDATES: dict[str, Callable[[str], Candidates]] = {
    "run": runs,
    "runs": runs,
    "resume": runs,
    "overrides": overrides,
    "changes": overrides,
    "keys": data_keys,
    "runs.folder": words(),
    "models.name": models,
    "reproduce.names": experiments,
    "reproduce.recipe": words("default", "paper", "both"),
    "reproduce.solver": words("stochastic", "newton", "moments"),
    "reproduce.data": words("cifar10", "natural", "mnist"),
    "along": words("lam", "a"),
    "sample.field": words(*FIELDS),
    "download.name": words("cifar10", "cifar100", "mnist"),
    "if_exists": words("new", "skip", "resume", "fail"),
    "log_format": words("auto", "bar", "plain"),
    "cfg": words("job", "hydra", "all"),
    "info": words("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
    "what": words(*FIGURES),
    "plot.formats": words("png", "pdf", "svg", "pdf,svg"),
    "to": words("tensorboard", "mlflow", "wandb"),
    "tag": words(),
    "install": words(*SHELLS),
    "show": words(*SHELLS),
}


def answer(shell: str) -> None:
    """The whole of a call from a shell: standard output holds candidates, standard error nothing."""
    import contextlib
    import os

    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        contextlib.suppress(Exception),
    ):
        complete(shell if re.fullmatch("[a-z]+", shell) else "", sys.argv[1:])
