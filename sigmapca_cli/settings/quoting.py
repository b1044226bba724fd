"""Values in the grammar of Hydra's overrides, and overrides as words of a shell: for commands that are suggested."""

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sigmapca_cli.system.errors import InputError

# Such words are read as text without quotes: names, and paths that begin with a letter, /, ./, ../ or ~/.
PLAIN = re.compile(r"(?:~?/|\.{1,2}/)?[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
KEYWORDS = ("null", "true", "false", "inf", "nan")


def override(key: str, value: Any) -> str:
    """Return KEY=VALUE in Hydra's grammar, whatever characters the value holds. Raise InputError as `literal` does."""
    try:
        return f"{key}={literal(value)}"
    except TypeError as problem:
        raise InputError(f"{key}={problem}: give a number, a word, a list or a dictionary of these") from None


def shell_word(key: str, value: Any) -> str:
    """Return KEY=VALUE as one word of a shell's command line, for a command that a message suggests."""
    return shlex.quote(override(key, value))


def literal(value: Any) -> str:
    """Return a value in Hydra's grammar. Raise TypeError, with the name of its type, for one that it does not have."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of NumPy or torch
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | os.PathLike):
        return _text(os.fspath(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(str(key))}:{literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return "[" + ",".join(map(literal, value)) + "]"
    raise TypeError(type(value).__name__)


def _text(word: str) -> str:
    """Return a word as it is, or in quotes where the grammar would read something else.

    Within quotes a backslash stands for itself, but for those in front of a quote. `${` would begin an interpolation.
    """
    if PLAIN.fullmatch(word) and word.lower() not in KEYWORDS:
        return word
    word = without_interpolation(word)
    escaped = re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), word)
    return f'"{escaped}"'


def without_interpolation(value: Any) -> Any:
    """Return plain data in which OmegaConf finds no interpolation: each `${` stands for itself."""
    if isinstance(value, Mapping):
        return {key: without_interpolation(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_interpolation(item) for item in value]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", value) if isinstance(value, str) else value
