"""Python values as overrides in Hydra's grammar."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sigmapca_cli.errors import InputError

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
KEYWORDS = ("null", "true", "false", "inf", "nan")


def override(name: str, value: Any) -> str:
    """Return KEY=VALUE of a keyword argument; two underscores in its name are a dot: `data__n` is data.n."""
    return f"{name.replace('__', '.')}={literal(name, value)}"


def literal(name: str, value: Any) -> str:
    """Return a value as Hydra's grammar reads it. Raise InputError for one that no setting can be."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of NumPy or torch
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | os.PathLike):
        return text(os.fspath(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{text(str(key))}:{literal(name, item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(literal(name, item) for item in value) + "]"
    raise InputError(f"{name}={type(value).__name__}: give a number, a word, a list or a dictionary of these")


def text(word: str) -> str:
    """Return a word as it is, or in quotes where the grammar would read something else."""
    if PLAIN.fullmatch(word) and word.lower() not in KEYWORDS:
        return word
    # Within quotes a backslash stands for itself, except in front of a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), word)
    return f"'{escaped}'"
