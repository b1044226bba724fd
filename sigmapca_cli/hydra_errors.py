"""What Hydra 1.3 refuses before a job begins, put into one line with the nearest valid name.

Hydra's own hint ("use +key=value") would let a typo pass as a new key, so its texts are matched and replaced.
A test holds each of these texts against the installed version.
"""

import re

from sigmapca_cli.checks import nearest
from sigmapca_cli.conf_files import groups
from sigmapca_cli.config import known_keys

PLUGINS = {
    "joblib": "hydra-joblib-launcher",
    "ray": "hydra-ray-launcher",
    "submitit_local": "hydra-submitit-launcher",
    "submitit_slurm": "hydra-submitit-launcher",
    "optuna": "hydra-optuna-sweeper",
    "ax": "hydra-ax-sweeper",
    "nevergrad": "hydra-nevergrad-sweeper",
}
"""Launcher or sweeper: the package that brings it."""


TEXTS = {
    "note": "a text with commas needs quotes within quotes: \"note='first, second'\"",
    "tags": "several tags are a list: 'tags=[pilot,v2]'",
    "tracker": "several trackers are a list: 'tracker=[tensorboard,mlflow]'",
    "objective": "several objectives are a list: 'objective=[stability,loss]'",
}
"""Key: what to do if its value holds a comma, where nobody means a sweep."""


def chain(problem: BaseException) -> str:
    """The texts of an exception and of what caused it."""
    texts: list[str] = []
    current: BaseException | None = problem
    while current is not None:
        text = str(current)
        if text not in texts:
            texts.append(text)
        current = current.__cause__ or current.__context__
    return "\n".join(texts)


def one_line(problem: BaseException, overrides: list[str]) -> str | None:
    """The line for a user, or None where the exception is not Hydra's or OmegaConf's."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    nameless = next(
        (given for given in overrides if not given.strip() or given.lstrip("+~")[:1] == "="), None
    )
    if nameless is not None:
        return f"{nameless!r}: an override is key=value"
    if type(problem).__name__ in ("ParserError", "ScannerError"):  # of YAML, whose text names file and line
        return f"cannot be read as YAML: {problem}"
    if "Only one of --run, --multirun, --cfg, --info" in str(problem):
        return "-m, --cfg and --info exclude each other: give one of them"
    if isinstance(problem, OverflowError):
        return too_large(problem, overrides)
    if str(problem).startswith("Config group override"):
        return no_group_choice(overrides)
    if not isinstance(problem, (HydraException, OmegaConfBaseException)):
        return None
    text = chain(problem)
    if "does not support sweep type" in text:
        return "ranges such as interval(1,8) are for a search: add hydra/sweeper=optuna objective=stability"
    for rule in (missing_option, unknown_key, sweep_without_flag, wrong_type, bad_syntax):
        line = rule(text, overrides)
        if line:
            return line
    return text.splitlines()[0]


def missing_option(text: str, overrides: list[str]) -> str | None:
    """`model=nlpcaa`, or a primary config that does not exist."""
    match = re.search(r"Could not find '([^']+)/([^'/]+)'", text)
    if match:
        group, option = match.groups()
        choices = groups().get(group, [])
        listed = f" (choices: {', '.join(choices)})" if 0 < len(choices) <= 12 else ""
        more = "; `sigmapca models` lists them" if group == "model" else ""
        if group in ("hydra/launcher", "hydra/sweeper"):
            package = PLUGINS.get(option)
            more = f"; its plugin is not installed{f' (pip install {package})' if package else ''}"
        return f"{group}={option}: no such choice{nearest(option, choices)}{listed}{more}"
    match = re.search(r"Cannot find primary config '([^']+)'", text)
    if match:
        return f"--config-name {match[1]}: no such file in the configuration folder"
    match = re.search(r"Primary config (?:module|directory) ?('[^']+')? ?not found", text)
    if match:
        return f"--config-path: no such folder{' as ' + match[1] if match[1] else ''}; give an absolute path"
    match = re.search(r"Additional config directory '([^']+)' not found", text)
    return f"--config-dir {match[1]}: no such folder" if match else None


def too_large(problem: OverflowError, overrides: list[str]) -> str:
    """A whole number that no float can hold: 10³⁰⁹ and more."""
    key = re.search(r"full_key: (\S+)", str(problem))
    named = (
        key[1]
        if key
        else next((o.partition("=")[0] for o in overrides if re.search(r"\d{300}", o)), "a value")
    )
    return f"{named}: the number is too large"


def no_group_choice(overrides: list[str]) -> str:
    """`recipe=1`, `model={}`: a group is chosen by a name."""
    for given in overrides:
        group, _, value = given.lstrip("+~").partition("=")
        if group in groups() and value not in groups()[group]:
            return f"{given}: no such choice; `sigmapca train --help` lists those of {group}"
    return "a group is chosen by its name, as in model=nlpca"


def unknown_key(text: str, overrides: list[str]) -> str | None:
    """`sed=3`: a key that is in no schema, with or without a leading +."""
    match = (
        re.search(r"Could not override '([^']+)'", text)
        or re.search(r"Key '([^']+)' (?:is )?not in (?:struct|'\w+')", text)
        or re.search(r"Could not append to config[^']*'([^']+)'", text)
    )
    if not match:
        return None
    word = match[1]
    full = re.search(r"full_key: (\S+)", text)
    if full:
        word = full[1]
    given = next((o.lstrip("+~").split("=")[0] for o in overrides if o.lstrip("+~").startswith(word)), word)
    return f"{given}: no such key{nearest(given, [*known_keys(), *groups()])}; `sigmapca train --help` lists them"


def sweep_without_flag(text: str, overrides: list[str]) -> str | None:
    """`a=1,2` without -m."""
    match = re.search(r"Ambiguous value for argument '([^']+)'", text)
    if not match:
        return None
    key = match[1].partition("=")[0]
    if key in TEXTS:
        return f"{key}: {TEXTS[key]}"
    return f"{match[1]}: several values make a sweep, which needs -m: sigmapca train -m {match[1]}"


def wrong_type(text: str, overrides: list[str]) -> str | None:
    """`k=abc`, `lr=null`."""
    match = re.search(
        r"Value '([^']*)' of type '\w+' (?:could not be converted to|is not a supported) (\w+)", text
    )
    key = re.search(r"full_key: (\S+)", text)
    if match and key:
        kinds = {"Integer": "a whole number", "Float": "a number", "Boolean": "true or false"}
        return f"{key[1]}={match[1]}: must be {kinds.get(match[2], match[2])}"
    if "is not Optional" in text and key:
        return f"{key[1]}: null is not allowed here"
    match = re.search(r"Error merging override (\S+)", text)
    return f"{match[1]}: this key does not take such a value" if match else None


def bad_syntax(text: str, overrides: list[str]) -> str | None:
    """What the override grammar cannot read."""
    match = re.search(r"Error parsing override '([^']*)'", text)
    if not match and not re.search(r"override_grammar", text):
        return None
    # Where the grammar names a fragment only, it is the one override that cannot be parsed alone.
    given = match[1] if match else next((o for o in overrides if unreadable(o)), text.splitlines()[0])
    if "=" not in given:
        return f"{given}: an override is key=value{nearest(given, groups())}"
    return f"{given}: cannot be read; put values with special characters in quotes: \"key='value'\""


def unreadable(override: str) -> bool:
    """Whether Hydra's grammar refuses this override."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        return True
    return False
