"""Checks of settings, with one wording for all of them: `key=value: what is allowed`.

Only the standard library is imported here: help and completion read the schema without loading anything else.
"""

import math
from collections.abc import Iterable
from typing import Any

from sigmapca_cli.system.errors import InputError
from sigmapca_cli.system.text import is_finite, shown


def nearest(word: str, names: Iterable[str]) -> str:
    """Return a hint that names the closest valid name, `; did you mean NAME?`, or an empty text."""
    from difflib import get_close_matches

    names = list(names)
    near = get_close_matches(word, names, 1, 0.5)
    if not near:
        last = word.split(".")[-1]
        near = [name for name in names if name.split(".")[-1] == last][:1]
    return f"; did you mean {near[0]}?" if near else ""


def choice(key: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise InputError if the value is none of those allowed."""
    allowed = tuple(allowed)
    if value not in allowed:
        hint = nearest(str(value), allowed)
        raise InputError(f"{key}={as_text(value)}: choose one of {', '.join(allowed)}{hint}")


def in_range(
    key: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    words: tuple[str, ...] = (),
) -> None:
    """Raise InputError if the value is not a finite number in [low, high], or ]low, high] with `open_low`.

    None and the words are allowed too; a truth value is no number.
    """
    if value is None or (isinstance(value, str) and value in words):
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
    if not number or value < low or value > high or (open_low and value == low):
        raise InputError(f"{key}={as_text(value)}: must be {range_in_words(low, high, open_low, words)}")


def range_in_words(low: float, high: float, open_low: bool, words: tuple[str, ...]) -> str:
    """Return what `in_range` allows, as `a finite number ≥ 0 and ≤ 1, or auto`."""
    bounds = []
    if low > -math.inf:
        bounds.append(f"{'>' if open_low else '≥'} {low:g}")
    if high < math.inf:
        bounds.append(f"≤ {high:g}")
    return f"a finite number {' and '.join(bounds)}".rstrip() + "".join(f", or {word}" for word in words)


def as_text(value: Any) -> str:
    """Return a value for a message, of moderate length."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown(value)
    text = str(value)
    return text if len(text) <= 40 else f"{text[:36]}…"
