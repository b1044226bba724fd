"""Text for people: numbers and foreign words in messages, tables and CSV files."""

import math
import re

# Control characters steer a terminal, and the marks of writing direction let a text show other than it is.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_FORMULA = re.compile(r"\s*[=+\-@]")


def is_finite(value: float) -> bool:
    """Neither NaN nor infinite, nor a whole number that no float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def shown(value: float) -> str:
    """Return a number as text for a message, at most 24 characters long."""
    text = str(value) if isinstance(value, int) else f"{value:g}"
    return text if len(text) <= 24 else f"{text[:20]}…"


def printable(text: str, keep: str = "") -> str:
    """Return `text` with its control characters and direction marks written as escapes, `\\x1b` for example.

    Texts out of a run folder, and names of files, may come from a stranger: printed as they are they could clear
    the screen, set the terminal's title or show another command than the one that was run. Characters in `keep` stay.
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def _escape(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def csv_cell(value: object) -> object:
    """Return a cell of a CSV file: a text that a spreadsheet would run as a formula gets a `'` in front.

    Numbers stay as they are, -1.5 and +1e3 as texts too.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def reason(error: BaseException) -> str:
    """Return what a library said, as one short line."""
    text = printable(" ".join(str(error).split()))
    return text[:160] or type(error).__name__
